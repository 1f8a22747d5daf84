"""The Python worker: `engine` generates with exact ids, `training` takes gradient steps, `model` is what both load."""

import logging

# Where it is installed, peft imports it, and it complains of a faster kernel that it would fetch from a hub.
logging.getLogger("bitsandbytes").setLevel(logging.ERROR)
