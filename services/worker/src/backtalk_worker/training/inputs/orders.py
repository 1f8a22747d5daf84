"""Steps that several processes take together: rank 0 gives the order with all that it needs, the others follow it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from backtalk_worker.gen.backtalk.v1.training_pb2 import ScoreResponse, TrainResult
from backtalk_worker.training.domain.step import Progress
from backtalk_worker.training.errors import BlobMissingError, GroupLostError, StepCancelledError
from backtalk_worker.training.events import TrainingEvents
from backtalk_worker.training.inputs import work
from backtalk_worker.training.inputs.decode import ScoreOrder, TrainOrder
from backtalk_worker.training.outputs.base_model import BaseModel
from backtalk_worker.training.outputs.blob_cache import BlobCache
from backtalk_worker.training.outputs.process_group import ProcessGroup
from backtalk_worker.training.outputs.version_files import VersionFiles


@dataclass(frozen=True)
class GroupOrder:
    """What rank 0 has the others do."""

    wanted: TrainOrder | ScoreOrder
    parents: Mapping[str, bytes]
    """Files of the parent by digest: only rank 0 has a cache."""

    def get(self, digest: str) -> bytes:
        if digest not in self.parents:
            raise BlobMissingError(digest)
        return self.parents[digest]

    def put(self, data: bytes) -> str:
        raise AssertionError("rank 0 alone writes")


def lead(order: TrainOrder, base: BaseModel, blobs: BlobCache, progress: Progress, group: ProcessGroup) -> TrainResult:
    """Takes the step with the others. The result is of a group that was whole to its end and is the newest."""
    digests = [*order.parent_adapter.values(), *order.parent_training_state.values()]
    given = GroupOrder(order, {digest: blobs.get(digest) for digest in digests})

    def told(phase: str, number: int, count: int, loss: float) -> None:
        try:
            progress(phase, number, count, loss)
        except StepCancelledError:
            group.cancel()
            raise

    group.give(given)
    result = group.apart(lambda: work.train(order, base, VersionFiles(blobs), told, group))
    group.check_newest()
    assert result is not None
    return result


def lead_score(
    order: ScoreOrder, base: BaseModel, blobs: BlobCache, tick: Callable[[], None], group: ProcessGroup
) -> ScoreResponse:
    """Scores with the others, who hold parts of the base."""
    group.give(GroupOrder(order, {digest: blobs.get(digest) for digest in order.adapter.values()}))
    return group.apart(lambda: work.score(order, base, VersionFiles(blobs), tick))


def follow(base: BaseModel, group: ProcessGroup, events: TrainingEvents) -> None:
    """Does what rank 0 orders, until the group is lost; what fails is told to rank 0, which answers for it."""

    def progress(_phase: str, _number: int, _count: int, _loss: float) -> None:
        if group.cancelled:
            raise StepCancelledError

    def do(order: GroupOrder) -> None:
        files, wanted = VersionFiles(order), order.wanted
        if isinstance(wanted, TrainOrder):
            work.train(wanted, base, files, progress, group)
        else:
            work.score(wanted, base, files, lambda: None)

    while True:
        order: GroupOrder = group.take()
        try:
            group.apart(lambda order=order: do(order))
        except GroupLostError:
            raise
        except Exception as error:
            events.order_failed(error)
