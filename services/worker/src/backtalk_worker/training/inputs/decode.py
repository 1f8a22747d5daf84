"""Reads requests: messages of the wire contract in, checked values of the domain out, or RequestInvalidError."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from pydantic import ValidationError

from backtalk_worker.gen.backtalk.v1 import training_pb2, weights_pb2
from backtalk_worker.process.errors import complaints
from backtalk_worker.training.domain.probes import ANSWER_TOKENS_MAX
from backtalk_worker.training.domain.recipe import Recipe
from backtalk_worker.training.domain.sample import Sample
from backtalk_worker.training.errors import RequestInvalidError

SAMPLES_MAX = 4096
PROBES_MAX = 64
ID_MAX = 200


@dataclass(frozen=True)
class TrainOrder:
    """One step to take."""

    call: str
    seed: int
    recipe: Recipe
    samples: tuple[Sample, ...]
    parent_adapter: Mapping[str, str]
    """File name → digest; empty = start from the base."""
    parent_training_state: Mapping[str, str]
    probes: tuple[tuple[int, ...], ...]
    told_probes: tuple[tuple[int, ...], ...]
    """The same prompts with lessons in them, or none."""


@dataclass(frozen=True)
class ScoreOrder:
    """Given ids to be scored under given weights."""

    adapter: Mapping[str, str]
    """Empty = the base."""
    prompts: tuple[tuple[int, ...], ...]
    answers: tuple[tuple[int, ...], ...]
    temperatures: tuple[float, ...]


def train_order(request: training_pb2.TrainRequest, vocabulary: int, context: int) -> TrainOrder:
    """Checks everything that needs no model."""
    if not re.fullmatch(rf"\S{{1,{ID_MAX}}}", request.call):
        raise RequestInvalidError(f"call must be 1 to {ID_MAX} characters without spaces")
    if not 0 < len(request.samples) <= SAMPLES_MAX:
        raise RequestInvalidError(f"a batch has 1 to {SAMPLES_MAX} samples")
    if len(request.probe_prompt_ids) > PROBES_MAX:
        raise RequestInvalidError(f"at most {PROBES_MAX} probe prompts")
    if len(request.told_probe_prompt_ids) not in (0, len(request.probe_prompt_ids)):
        raise RequestInvalidError("there is a told probe prompt for each probe prompt, or none")
    longest = context - ANSWER_TOKENS_MAX
    for probe in request.probe_prompt_ids:
        if not 0 < len(probe.ids) <= longest:
            raise RequestInvalidError("a probe prompt is empty, or longer than the model's context")
    for probe in (*request.probe_prompt_ids, *request.told_probe_prompt_ids):
        _check_ids(probe.ids, vocabulary)
    # What many lessons make too long is not scored: then drift is held against the base alone.
    told_fit = all(0 < len(probe.ids) <= longest for probe in request.told_probe_prompt_ids)
    return TrainOrder(
        call=request.call,
        seed=request.seed,
        recipe=_recipe(request.config, request.mean_answer_length),
        samples=tuple(_sample(sample) for sample in request.samples),
        parent_adapter=_digests(request.parent_adapter),
        parent_training_state=_digests(request.parent_training_state),
        probes=tuple(tuple(probe.ids) for probe in request.probe_prompt_ids),
        told_probes=tuple(tuple(probe.ids) for probe in request.told_probe_prompt_ids if told_fit),
    )


def score_order(request: training_pb2.ScoreRequest, vocabulary: int, context: int) -> ScoreOrder:
    """Checks ids, lengths and temperatures."""
    for item in request.items:
        if not item.prompt_ids or not item.answer_ids or item.temperature <= 0:
            raise RequestInvalidError("an item needs prompt ids, answer ids and a temperature above 0")
        if len(item.prompt_ids) + len(item.answer_ids) > context:
            raise RequestInvalidError(f"an item is longer than the model's {context} tokens")
        _check_ids([*item.prompt_ids, *item.answer_ids], vocabulary)
    return ScoreOrder(
        adapter=_digests(request.adapter),
        prompts=tuple(tuple(item.prompt_ids) for item in request.items),
        answers=tuple(tuple(item.answer_ids) for item in request.items),
        temperatures=tuple(item.temperature for item in request.items),
    )


def _recipe(config: training_pb2.TrainingConfig, mean_answer_length: float) -> Recipe:
    names = [field.name for field in fields(Recipe) if field.name != "mean_answer_length"]
    given: dict[str, Any] = {name: getattr(config, name) for name in names}
    # Plans of earlier releases name no teacher and average nothing, half of the answers were told, all of their tokens
    # distilled, and those that the policy would hardly give any more dropped.
    given["teacher"] = config.teacher or "base"
    given["told_share"] = config.told_share or 0.5
    given["distill_share"] = config.distill_share or 1.0
    given["off_policy"] = config.off_policy or "drop"
    try:
        return Recipe(**given, mean_answer_length=mean_answer_length)
    except ValidationError as error:
        raise RequestInvalidError(complaints(error)) from error


def _sample(sample: training_pb2.TrainSample) -> Sample:
    return Sample(
        turn=sample.turn,
        prompt_ids=tuple(sample.prompt_ids),
        answer_ids=tuple(sample.answer_ids),
        logprobs=tuple(sample.logprobs),
        temperature=sample.temperature,
        advantage=sample.advantage,
        cut=sample.cut,
        teacher_prompt_ids=tuple(sample.teacher_prompt_ids),
        other_teacher_prompts=tuple(tuple(prompt.ids) for prompt in sample.other_teacher_prompts),
        shown=sample.shown,
    )


def _check_ids(ids: Iterable[int], vocabulary: int) -> None:
    if any(i >= vocabulary for i in ids):
        raise RequestInvalidError(f"a token id is outside the vocabulary of {vocabulary}")


def _digests(files: Iterable[weights_pb2.WeightsFile]) -> dict[str, str]:
    return {file.name: file.digest for file in files}
