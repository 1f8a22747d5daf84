"""The built-in engine: one base model and its LoRA adapters, over the parts of vLLM's dialect that Backtalk uses."""
