"""The scorer: says of given answers whether they obey, and whether they still answer their own question.

It is an instrument of measurement only. It shares no code with the simulated user or the judge.
"""
