"""AdamW over an adapter, with a state that is part of the version: names and tensors in, names and tensors out.

The state holds the count of steps and both moments of every parameter, so that a step from saved state equals the next
step of a run that never stopped.
"""

from collections.abc import Mapping

import torch
from torch import Tensor

from backtalk_worker.training.domain.adapter import AdaptedNetwork
from backtalk_worker.training.domain.recipe import Recipe

MOMENTS = ("exp_avg", "exp_avg_sq")
STEP = "step"


def make_optimizer(adapted: AdaptedNetwork, recipe: Recipe, state: Mapping[str, Tensor]) -> torch.optim.AdamW:
    """AdamW (Loshchilov & Hutter 2019), one parameter after the other; an empty state starts afresh."""
    optimizer = torch.optim.AdamW(
        list(adapted.parameters.values()),
        lr=recipe.learning_rate,
        betas=(recipe.adam_beta1, recipe.adam_beta2),
        weight_decay=recipe.weight_decay,
        foreach=False,
    )
    if state:
        for name, parameter in adapted.parameters.items():
            optimizer.state[parameter] = {STEP: state[STEP].clone().cpu()} | {
                moment: state[f"{name}.{moment}"].to(parameter.device, parameter.dtype, copy=True) for moment in MOMENTS
            }
    return optimizer


def optimizer_state(adapted: AdaptedNetwork, optimizer: torch.optim.AdamW) -> dict[str, Tensor]:
    """The state by name; empty before the first step."""
    saved: dict[str, Tensor] = {}
    for name, parameter in adapted.parameters.items():
        held = optimizer.state.get(parameter)
        if not held:
            return {}
        saved[STEP] = held[STEP].detach().clone()
        saved |= {f"{name}.{moment}": held[moment].detach().clone() for moment in MOMENTS}
    return saved


def state_mismatch(adapted: AdaptedNetwork, state: Mapping[str, Tensor]) -> str:
    """Why a saved state does not belong to this adapter; empty when it does."""
    if not state:
        return ""
    shapes = {f"{name}.{moment}": value.shape for name, value in adapted.parameters.items() for moment in MOMENTS}
    if set(state) != {*shapes, STEP}:
        return "its tensors are not those of the adapter"
    wrong = [name for name, shape in shapes.items() if state[name].shape != shape]
    return f"{wrong[0]} has the wrong shape" if wrong else ""
