"""How one step is taken: every setting of the learning method, checked once.

In: plain values. Out: a frozen Recipe. It knows nothing of the wire format.
"""

import math
from dataclasses import dataclass, fields
from typing import Literal

Method = Literal["binary", "opd", "combined"]
OpdForm = Literal["sampled", "full"]
DivergenceName = Literal["reverse_kl", "forward_kl", "jsd"]
KlForm = Literal["full", "sampled"]
HintPlace = Literal["human", "system"]

METHODS: tuple[Method, ...] = ("binary", "opd", "combined")
OPD_FORMS: tuple[OpdForm, ...] = ("sampled", "full")
DIVERGENCES: tuple[DivergenceName, ...] = ("reverse_kl", "forward_kl", "jsd")
KL_FORMS: tuple[KlForm, ...] = ("full", "sampled")
HINT_PLACES: tuple[HintPlace, ...] = ("human", "system")


@dataclass(frozen=True)
class Recipe:
    """Settings of a step; lengths in tokens, divergences in nats."""

    method: Method
    opd_form: OpdForm
    divergence: DivergenceName
    weight_rl: float
    """Weights of the two terms; only `combined` uses them, the pure methods weigh their one term 1."""
    weight_opd: float
    lora_rank: int
    lora_alpha: int
    learning_rate: float
    adam_beta1: float
    adam_beta2: float
    weight_decay: float
    gradient_clip: float
    clip_low: float
    clip_high: float
    dual_clip: float
    opd_advantage_clip: float
    """0 = no clip: the sampled form without bound."""
    step_bound: float
    """Nats an answer; 0 = no bound."""
    kl_beta: float
    kl_form: KlForm
    max_answer_tokens: int
    micro_batch_tokens: int
    optimizer_steps: int
    jsd_beta: float
    hint_place: HintPlace
    max_tokens: int
    staleness_max: float
    """mean |log v| of an answer, above which no term that weighs by v is taken of it; 0 = no bound."""
    mean_answer_length: float
    """L̄: the constant length in the normaliser."""

    def problems(self) -> list[str]:
        """What is wrong with the settings, one line each; empty when they make sense."""
        found = [
            f"{field.name} is not finite"
            for field in fields(self)
            if isinstance(value := getattr(self, field.name), float) and not math.isfinite(value)
        ]
        found += _choices(self)
        for name in ("learning_rate", "gradient_clip", "lora_rank", "lora_alpha", "max_answer_tokens"):
            if getattr(self, name) <= 0:
                found.append(f"{name} must be above 0")
        for name in ("micro_batch_tokens", "optimizer_steps", "max_tokens", "mean_answer_length"):
            if getattr(self, name) <= 0:
                found.append(f"{name} must be above 0")
        for name in (
            "weight_rl",
            "weight_opd",
            "weight_decay",
            "opd_advantage_clip",
            "step_bound",
            "kl_beta",
            "staleness_max",
        ):
            if getattr(self, name) < 0:
                found.append(f"{name} must not be negative")
        for name in ("adam_beta1", "adam_beta2"):
            if not 0 <= getattr(self, name) < 1:
                found.append(f"{name} must be from 0 to below 1")
        if not 0 <= self.clip_low < 1 or self.clip_high < 0:
            found.append("clip_low must be from 0 to below 1 and clip_high not negative")
        if self.dual_clip <= 1:
            found.append("dual_clip must be above 1")
        if self.divergence == "jsd" and not 0 < self.jsd_beta < 1:
            found.append("jsd_beta must be between 0 and 1")
        return found

    @property
    def term_weights(self) -> tuple[float, float]:
        """Weights of the binary and the distillation term."""
        match self.method:
            case "binary":
                return 1.0, 0.0
            case "opd":
                return 0.0, 1.0
            case "combined":
                return self.weight_rl, self.weight_opd


def _choices(recipe: Recipe) -> list[str]:
    allowed: dict[str, tuple[str, ...]] = {
        "method": METHODS,
        "opd_form": OPD_FORMS,
        "divergence": DIVERGENCES,
        "kl_form": KL_FORMS,
        "hint_place": HINT_PLACES,
    }
    return [
        f"{name} must be one of {', '.join(values)}"
        for name, values in allowed.items()
        if getattr(recipe, name) not in values
    ]
