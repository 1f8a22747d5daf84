"""What a call does on the model: one step, or one scoring, from the cache back into the cache.

It runs in the one thread that may touch the model, and knows nothing of gRPC calls.
"""

import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import asdict

from torch import Tensor
from torch.optim import AdamW

from backtalk_worker.gen.backtalk.v1 import training_pb2, weights_pb2
from backtalk_worker.training.domain.adapter import AdaptedNetwork, AdapterShape, adapted
from backtalk_worker.training.domain.batch import BatchItem, prepare_batch
from backtalk_worker.training.domain.drawn_answers import Drawing, drawn_items
from backtalk_worker.training.domain.frozen_states import score_answers
from backtalk_worker.training.domain.group import ALONE, Group
from backtalk_worker.training.domain.hint_choice import with_chosen_hints
from backtalk_worker.training.domain.network import ChunkedNetwork, network_of
from backtalk_worker.training.domain.optimizer import make_optimizer, optimizer_state, state_mismatch
from backtalk_worker.training.domain.probes import ProbeAnswer, answer_probes
from backtalk_worker.training.domain.step import Progress, take_step
from backtalk_worker.training.domain.teacher import Teacher, moved_average
from backtalk_worker.training.domain.token_budget import TokenBudget
from backtalk_worker.training.errors import AdapterInvalidError, ParentElsewhereError, TeacherMissingError
from backtalk_worker.training.inputs.decode import ScoreOrder, TrainOrder
from backtalk_worker.training.outputs.base_model import BaseModel
from backtalk_worker.training.outputs.version_files import AVERAGE_FILE, OPTIMIZER_FILE, REMOTE_FILE, VersionFiles

SCORE_TOKENS = 2048
"""Tokens of one forward pass of a scoring, padding included."""


def train(
    order: TrainOrder, base: BaseModel, files: VersionFiles, progress: Progress, group: Group = ALONE
) -> training_pb2.TrainResult | None:
    """Takes the step and stores its files; nothing is stored unless the whole step worked, and by rank 0 alone.

    Only rank 0 has a result.
    """
    started = time.monotonic()
    shape = AdapterShape(order.recipe.lora_rank, order.recipe.lora_alpha, base.target_modules)
    loaded = base.loaded
    items = prepare_batch(order.samples, order.recipe, loaded.context_length, loaded.vocabulary_size)
    with ExitStack() as stack:

        def load() -> tuple[AdaptedNetwork, AdamW, bool, Teacher]:
            progress("load", 0, 0, 0.0)
            policy = stack.enter_context(adapted(base.network, shape, order.seed, base.layout))
            return policy, *_restored(policy, shape, order, files), _teacher(policy, order, base, files)

        def probe() -> list[ProbeAnswer]:
            return answer_probes(
                policy.network,
                order.probes,
                order.told_probes,
                loaded.end_ids,
                order.seed,
                TokenBudget(order.recipe.micro_batch_tokens),
                lambda: progress("probes", 0, 0, 0.0),
            )

        def answer() -> list[BatchItem]:
            recipe, context = order.recipe, loaded.context_length
            budget = TokenBudget(recipe.micro_batch_tokens)

            def tick() -> None:
                progress("told", 0, 0, 0.0)

            taught = with_chosen_hints(teacher, items, recipe.top_k, context, budget, tick)
            return drawn_items(Drawing(teacher, recipe, context, loaded.end_ids, order.seed, budget, tick), taught)

        policy, optimizer, was_restored, teacher = group.apart(load)
        # Processes that hold the base alone may round otherwise: what rank 0 has is what all train on.
        answered = group.gather(group.apart(answer))[0]
        outcome = take_step(teacher, optimizer, answered, order.recipe, order.seed, progress, group)
        answers = group.apart(probe)
        if group.rank > 0:
            return None
        progress("save", 0, 0, 0.0)
        tensors = policy.tensors()
        state = {OPTIMIZER_FILE: optimizer_state(policy, optimizer)}
        if teacher.whose == "ema":
            state[AVERAGE_FILE] = moved_average(teacher.average, tensors, order.recipe.ema_decay)
        return training_pb2.TrainResult(
            adapter=files.write_adapter(shape, tensors, base.name),
            training_state=files.write_training_state(state),
            report=weights_pb2.TrainingReport(
                measurements={**outcome.measurements, "optimizer_restored": float(was_restored)}
                | {"seconds": time.monotonic() - started},
                samples=[weights_pb2.SampleReport(**asdict(sample)) for sample in outcome.samples],
            ),
            probes=[weights_pb2.Probe(**asdict(answer)) for answer in answers],
            dtype=base.dtype,
            base_model=base.name,
            base_digest=base.digest,
            teacher_digest=base.teacher.digest if base.teacher and teacher.whose == "other" else "",
        )


def train_alone(
    order: TrainOrder, base: BaseModel, files: VersionFiles, progress: Progress
) -> training_pb2.TrainResult:
    """The step of one process."""
    result = train(order, base, files, progress)
    assert result is not None
    return result


def _restored(
    policy: AdaptedNetwork, shape: AdapterShape, order: TrainOrder, files: VersionFiles
) -> tuple[AdamW, bool]:
    """Sets the parent's adapter; the optimiser with the parent's state, and whether it had one."""
    if REMOTE_FILE in order.parent_training_state:
        raise ParentElsewhereError("a training service")
    if order.parent_adapter:
        found, tensors = files.read_adapter(order.parent_adapter)
        if found != shape:
            raise AdapterInvalidError("the parent's rank, alpha or layers are not those of this recipe and base")
        _set_tensors(policy, tensors)
    state = files.read_training_state(OPTIMIZER_FILE, order.parent_training_state)
    if problem := state_mismatch(policy, state):
        raise AdapterInvalidError(f"the optimiser's state does not fit: {problem}")
    return make_optimizer(policy, order.recipe, state), bool(state)


def _teacher(policy: AdaptedNetwork, order: TrainOrder, base: BaseModel, files: VersionFiles) -> Teacher:
    """Who teaches the restored policy; its average begins where the policy then stands."""
    whose = order.recipe.teacher
    if whose == "other":
        if base.teacher is None:
            raise TeacherMissingError
        return Teacher(policy, whose, other=network_of(base.teacher.network, base.layout))
    if whose != "ema":
        return Teacher(policy, whose)
    average = files.read_training_state(AVERAGE_FILE, order.parent_training_state) or policy.tensors()
    if problem := policy.mismatch(average):
        raise AdapterInvalidError(f"the average of the policy does not fit: {problem}")
    return Teacher(policy, whose, average)


def score(
    order: ScoreOrder, base: BaseModel, files: VersionFiles, tick: Callable[[], None]
) -> training_pb2.ScoreResponse:
    """Logprobs of the given ids under the given adapter, or under the base."""
    with ExitStack() as stack:

        def load() -> ChunkedNetwork:
            if not order.adapter:
                return network_of(base.network, base.layout)
            shape, tensors = files.read_adapter(order.adapter)
            policy = stack.enter_context(adapted(base.network, shape, 0, base.layout))
            _set_tensors(policy, tensors)
            return policy.network

        network = base.layout.sharing.apart(load)
        budget = TokenBudget(SCORE_TOKENS)
        rows = score_answers(network, order.prompts, order.answers, order.temperatures, budget, lambda _i, _n: tick())
    return training_pb2.ScoreResponse(results=[training_pb2.ScoreResult(logprobs=row) for row in rows])


def _set_tensors(policy: AdaptedNetwork, tensors: Mapping[str, Tensor]) -> None:
    if problem := policy.mismatch(tensors):
        raise AdapterInvalidError(f"the adapter does not fit: {problem}")
    policy.set_tensors(tensors)
