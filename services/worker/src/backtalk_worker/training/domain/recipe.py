"""How one step is taken: every setting of the learning method, checked when it is made."""

from typing import Annotated, Literal, Self

from pydantic import ConfigDict, Field, model_validator
from pydantic.dataclasses import dataclass

DivergenceName = Literal["reverse_kl", "forward_kl", "jeffreys", "jsd"]
TeacherName = Literal["base", "current", "ema", "other"]

Positive = Annotated[float, Field(gt=0)]
NotNegative = Annotated[float, Field(ge=0)]
Share = Annotated[float, Field(ge=0, lt=1)]
Count = Annotated[int, Field(gt=0)]


@dataclass(frozen=True, config=ConfigDict(allow_inf_nan=False))
class Recipe:
    """Settings of a step; lengths in tokens, divergences in nats. ValidationError when they make no sense."""

    method: Literal["binary", "opd", "combined"]
    opd_form: Literal["sampled", "topk", "full", "hybrid"]
    divergence: DivergenceName
    teacher: TeacherName
    """Who is shown the hints: the frozen base, the policy as the step finds it, its average, or another model."""
    ema_decay: Share
    """Of the average of the policy, what each version leaves of the one before; for the teacher `ema` alone."""
    weight_rl: NotNegative
    """Weights of the two terms; only `combined` uses them, the pure methods weigh their one term 1."""
    weight_opd: NotNegative
    lora_rank: Count
    lora_alpha: Count
    learning_rate: Positive
    adam_beta1: Share
    adam_beta2: Share
    weight_decay: NotNegative
    gradient_clip: Positive
    clip_low: Share
    clip_high: NotNegative
    dual_clip: Annotated[float, Field(gt=1)]
    opd_advantage_clip: NotNegative
    """C of the forms `sampled` and `topk`; 0 = no bound."""
    top_k: Annotated[int, Field(ge=0)]
    """Likeliest tokens of policy and teacher that stand alone in the form `topk`."""
    step_bound: NotNegative
    """Nats an answer; 0 = no bound."""
    kl_beta: NotNegative
    kl_form: Literal["full", "sampled"]
    max_answer_tokens: Count
    micro_batch_tokens: Count
    optimizer_steps: Count
    jsd_beta: float
    told_share: Annotated[float, Field(gt=0, le=1)]
    """Of the taught samples, those that the teacher answers too in the form `hybrid`."""
    distill_share: Annotated[float, Field(gt=0, le=1)]
    """Of each answer's tokens, the first so many are distilled, one at least (prefix distillation)."""
    off_policy: Literal["answer_anew", "drop"]
    """What becomes of a taught answer that the policy would hardly give any more."""
    max_tokens: Count
    staleness_max: NotNegative
    """mean |log v| of an answer, above which no term that weighs by v is taken of it; 0 = no bound."""
    ess_min: Share
    """Effective share of samples, below which no term that weighs by v is taken in the whole step; 0 = no bound."""
    masked_share_max: Share
    """Share of tokens with v out of its bounds, above which the same holds; 0 = no bound."""
    mean_answer_length: Positive
    """L̄: the constant length in the normaliser."""

    @model_validator(mode="after")
    def _jsd_has_a_mixture(self) -> Self:
        if self.divergence == "jsd" and not 0 < self.jsd_beta < 1:
            raise ValueError("jsd_beta should be between 0 and 1")
        return self

    @model_validator(mode="after")
    def _bins_hold_something(self) -> Self:
        # Plans of before have none, and another form.
        if self.opd_form == "topk" and self.top_k == 0:
            raise ValueError("top_k should be above 0")
        return self

    @property
    def weighs_by_v(self) -> bool:
        """Whether any term is taken that corrects by v = π_old/μ; exact divergences do not."""
        weight_rl, weight_opd = self.term_weights
        sampled_opd = weight_opd > 0 and self.opd_form == "sampled"
        return weight_rl > 0 or sampled_opd or (self.kl_beta > 0 and self.kl_form == "sampled")

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
