"""What the training worker holds outside itself: the folder of blobs, the adapter and optimiser files in it."""
