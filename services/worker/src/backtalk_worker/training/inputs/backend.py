"""What takes the steps: this process, alone or with others, or a service elsewhere (`remote_work`)."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from backtalk_worker.gen.backtalk.v1.training_pb2 import ScoreResponse, TrainResult
from backtalk_worker.training.domain.step import Progress
from backtalk_worker.training.inputs import work
from backtalk_worker.training.inputs.decode import ScoreOrder, TrainOrder
from backtalk_worker.training.inputs.orders import lead, lead_score
from backtalk_worker.training.outputs.base_model import BaseFacts, BaseModel
from backtalk_worker.training.outputs.blob_cache import BlobCache
from backtalk_worker.training.outputs.process_group import ProcessGroup
from backtalk_worker.training.outputs.version_files import VersionFiles


class Backend(Protocol):
    """Runs in the one thread that computes."""

    @property
    def facts(self) -> BaseFacts: ...

    def train(self, order: TrainOrder, progress: Progress) -> TrainResult: ...

    def score(self, order: ScoreOrder, tick: Callable[[], None]) -> ScoreResponse: ...


@dataclass(frozen=True)
class LocalBackend:
    """The model is here, whole or a shard of it."""

    base: BaseModel
    blobs: BlobCache
    group: ProcessGroup | None

    @property
    def facts(self) -> BaseFacts:
        return self.base.facts

    def train(self, order: TrainOrder, progress: Progress) -> TrainResult:
        if self.group is None:
            return work.train_alone(order, self.base, VersionFiles(self.blobs), progress)
        return lead(order, self.base, self.blobs, progress, self.group)

    def score(self, order: ScoreOrder, tick: Callable[[], None]) -> ScoreResponse:
        if self.group is None or self.base.layout.sharing.size == 1:
            return work.score(order, self.base, VersionFiles(self.blobs), tick)
        return lead_score(order, self.base, self.blobs, tick, self.group)
