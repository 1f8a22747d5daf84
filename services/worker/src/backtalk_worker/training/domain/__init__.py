"""What a step is: losses, masks, forward passes, step bound. Pure tensors: no files, network, clock or logger."""
