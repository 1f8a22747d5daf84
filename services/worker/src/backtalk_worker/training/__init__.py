"""The training worker: one LoRA step at a time, asked for over gRPC; it holds no truth, only a cache of blobs."""
