"""The HTTP side: bodies are checked, turned into prompts and samplings, and answers written in vLLM's shapes."""
