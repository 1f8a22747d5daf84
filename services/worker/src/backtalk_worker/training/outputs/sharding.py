"""Cuts the layers of a frozen base into shards (FSDP2), one for each process: a layer is whole while it computes.

Embeddings, last norm and head stay whole, since the loss calls the head apart from the decoder. Adapters come later and
are no part of it: each process has all of them.
"""

from typing import Any

import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from transformers.modeling_layers import GradientCheckpointingLayer


def shard(network: Any, device: str) -> None:
    """Of the default process group; the network is on its device already."""
    mesh = init_device_mesh(device, (torch.distributed.get_world_size(),))
    decoder = network.get_decoder()
    layers = [module for module in decoder.modules() if isinstance(module, GradientCheckpointingLayer)]
    inside = {parameter for layer in layers for parameter in layer.parameters()}
    for layer in layers:
        fully_shard(layer, mesh=mesh)
    # The decoder is their root, which knows in which order to gather them, and holds nothing itself.
    fully_shard(decoder, mesh=mesh, ignored_params=set(decoder.parameters()) - inside)
