"""Who is shown the hints: the base, the policy as a step finds it, its average over the versions, or another model."""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch
from torch import Tensor

from backtalk_worker.training.domain.adapter import AdaptedNetwork
from backtalk_worker.training.domain.network import ChunkedNetwork
from backtalk_worker.training.domain.recipe import TeacherName


@dataclass(frozen=True)
class Teacher:
    """One of the four; nothing of it is trained."""

    policy: AdaptedNetwork
    whose: TeacherName = "base"
    average: Mapping[str, Tensor] = field(default_factory=dict[str, Tensor])
    """The adapter of `ema`."""
    other: ChunkedNetwork | None = None
    """The network of `other`: with the policy's vocabulary, in whatever size."""

    @contextmanager
    def present(self) -> Generator[ChunkedNetwork, None, None]:
        """Inside, the given network is the teacher, and the policy may be away."""
        network = self.policy.network
        match self.whose:
            case "base":
                with network.without_adapter():
                    yield network
            case "current":
                yield network
            case "ema":
                policy = self.policy.tensors()
                self.policy.set_tensors(self.average)
                try:
                    yield network
                finally:
                    self.policy.set_tensors(policy)
            case "other":
                yield self.speaking

    @property
    def speaking(self) -> ChunkedNetwork:
        """The network whose head turns the teacher's states into probabilities."""
        return self.policy.network if self.other is None else self.other


@torch.no_grad()
def moved_average(average: Mapping[str, Tensor], policy: Mapping[str, Tensor], decay: float) -> dict[str, Tensor]:
    """decay · average + (1 - decay) · policy, tensor by tensor: a mean teacher (Tarvainen & Valpola 2017)."""
    return {name: decay * average[name].to(value) + (1 - decay) * value for name, value in policy.items()}
