"""What reaches the training worker: gRPC calls, and HTTP probes for health and metrics."""
