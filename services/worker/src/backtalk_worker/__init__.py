"""The Python worker: `engine` generates with exact ids, `training` takes gradient steps, `model` is what both load."""
