"""What a model's answer says: its text, its thoughts, the tools that it calls.

One file a format; `reading` puts them together.
"""
