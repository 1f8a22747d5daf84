"""The laptop model: converted once from its GGUF wheel, then loaded as float32 by engine, trainer and tests."""
