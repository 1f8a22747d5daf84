"""What the engine drives: the network with its adapters, and the thread that batches rows through it."""
