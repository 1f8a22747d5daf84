"""What a call does where a service trains the model elsewhere: one step, or one scoring, from the cache back into it.

The counterpart of `work`, for recipes that ask for no more than the log-probabilities of sampled tokens.
"""

import re
import secrets
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

from torch import Tensor

from backtalk_worker.gen.backtalk.v1 import training_pb2, weights_pb2
from backtalk_worker.training.domain.adapter import AdapterShape, rank_and_alpha_in
from backtalk_worker.training.domain.probes import ANSWER_TOKENS_MAX
from backtalk_worker.training.domain.recipe import Recipe
from backtalk_worker.training.domain.sampled_step import TEMPERATURE, not_honoured
from backtalk_worker.training.domain.step import Progress
from backtalk_worker.training.errors import (
    ParentElsewhereError,
    RecipeNotHonouredError,
    RequestInvalidError,
    ServiceRefusedError,
    StepNotFiniteError,
)
from backtalk_worker.training.inputs.decode import ScoreOrder, TrainOrder
from backtalk_worker.training.inputs.remote_step import RemoteStep
from backtalk_worker.training.outputs.adapter_archive import Archive
from backtalk_worker.training.outputs.base_model import BaseFacts
from backtalk_worker.training.outputs.tinker_service import Run, Session, Texts, TinkerService
from backtalk_worker.training.outputs.version_files import VersionFiles

HEADS = ("lm_head", "embed_tokens")


@dataclass
class RemoteBackend:
    """Steps on a service that holds the weights; this process knows the tokenizer."""

    facts: BaseFacts
    service: TinkerService
    files: VersionFiles
    seen: tuple[int, int] | None = None
    """Rank and alpha of the adapter that the service gave last."""

    def train(self, order: TrainOrder, progress: Progress) -> training_pb2.TrainResult:
        """Takes the step and stores its files; nothing is stored, here or there, unless the whole step worked."""
        started = time.monotonic()
        parent = self.files.read_remote_path(order.parent_training_state)
        if problems := not_honoured(order.recipe):
            raise RecipeNotHonouredError(", ".join(problems))
        if order.parent_adapter and parent is None:
            raise ParentElsewhereError("another backend")
        with self.service.session(lambda: progress("remote", 0, 0, 0.0)) as session:
            step = RemoteStep(order, session, self.facts, parent)
            try:
                self._look(order, session, step.run)
                taken = step.take()
                state = step.run.save_state(_name(order.call))
                try:
                    result = self._result(order, session, step.run)
                    result.training_state.extend(self.files.write_remote_path(state))
                except Exception:
                    # The step is taken again, and saves anew.
                    session.remove(state)
                    raise
            finally:
                step.run.close()
        measurements = {**taken.measurements, "seconds": time.monotonic() - started}
        samples = [weights_pb2.SampleReport(**asdict(sample)) for sample in taken.samples]
        result.report.CopyFrom(weights_pb2.TrainingReport(measurements=measurements, samples=samples))
        return result

    def _look(self, order: TrainOrder, session: Session, run: Run) -> None:
        """Before anything is paid for: the service may have another rank or alpha than it is asked for."""
        if self.seen == (order.recipe.lora_rank, order.recipe.lora_alpha):
            return
        sampler = run.save_for_samplers(_name(f"look-{order.call}"))
        try:
            self._check_shape(session.archive(sampler), order.recipe)
        finally:
            session.remove(sampler)

    def _check_shape(self, archive: Archive, recipe: Recipe) -> None:
        try:
            self.seen = rank_and_alpha_in(archive.config)
        except ValueError as error:
            raise ServiceRefusedError(f"adapter_config.json can't be read: {error}") from error
        if self.seen != (recipe.lora_rank, recipe.lora_alpha):
            # The recipe of a batch stays as it is: such a step fails each time, and later batches have another.
            raise ServiceRefusedError("its adapters are others: set loraRank={}, loraAlpha={}".format(*self.seen))

    def _result(self, order: TrainOrder, session: Session, run: Run) -> training_pb2.TrainResult:
        """What engines load, and their probes; what samplers load is here then."""
        sampler = run.save_for_samplers(_name(order.call))
        try:
            archive = session.archive(sampler)
            self._check_shape(archive, order.recipe)
            shape, tensors = _adapter_in(archive, order.recipe)
            probes = _probes(order, session, self.facts, sampler)
        finally:
            session.remove(sampler)
        return training_pb2.TrainResult(
            adapter=self.files.write_adapter(shape, tensors, self.facts.name),
            probes=probes,
            dtype=self.facts.dtype,
            base_model=self.facts.name,
            base_digest=self.facts.digest,
        )

    def score(self, order: ScoreOrder, tick: Callable[[], None]) -> training_pb2.ScoreResponse:
        """Log-probabilities of given ids under the base, at temperature 1."""
        if order.adapter or any(temperature != TEMPERATURE for temperature in order.temperatures):
            raise RequestInvalidError("where a service trains, the base alone is scored, at temperature 1")
        with self.service.session(tick) as session:
            rows = session.base().logprobs(Texts(order.prompts, order.answers))
        return training_pb2.ScoreResponse(results=[training_pb2.ScoreResult(logprobs=row) for row in rows])


def _name(call: str) -> str:
    """Of what is saved: a step that is taken again saves it anew."""
    return f"{re.sub('[^A-Za-z0-9_-]', '-', call)[:80]}-{secrets.token_hex(4)}"


def _adapter_in(archive: Archive, recipe: Recipe) -> tuple[AdapterShape, dict[str, Tensor]]:
    """Shape and tensors of what the service trained, if engines can serve it; its rank and alpha are the recipe's."""
    # Some write the head's down, too, untouched; engines leave its part out of what they say of prompts.
    heads = {name for name in archive.tensors if any(head in name for head in HEADS)}
    if any(archive.tensors[name].any() for name in heads if "lora_B" in name):
        raise ServiceRefusedError("it trained the output head, which is not served")
    tensors = {name: value for name, value in archive.tensors.items() if name not in heads}
    if not all(bool(value.isfinite().all()) for value in tensors.values()):
        raise StepNotFiniteError("a weight")
    modules = tuple(sorted({name.split(".")[-3] for name in tensors}))
    return AdapterShape(recipe.lora_rank, recipe.lora_alpha, modules), dict(sorted(tensors.items()))


def _probes(order: TrainOrder, session: Session, facts: BaseFacts, path: str) -> list[weights_pb2.Probe]:
    """As `domain.probes` has them, of the weights there."""
    prompts = order.probes
    if not prompts:
        return []
    new, base = session.saved(path), session.base()
    answers = new.answers(prompts, ANSWER_TOKENS_MAX, facts.end_ids, order.seed)
    told = base.logprobs(Texts(order.told_probes, answers)) if order.told_probes else [[] for _ in prompts]
    own, plain = (sampler.logprobs(Texts(prompts, answers)) for sampler in (new, base))
    rows = zip(prompts, answers, own, plain, told, strict=True)
    return [
        weights_pb2.Probe(
            prompt_ids=prompt, answer_ids=answer, logprobs=new_row, base_logprobs=base_row, told_logprobs=told_row
        )
        for prompt, answer, new_row, base_row, told_row in rows
    ]
