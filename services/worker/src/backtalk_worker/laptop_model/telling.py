"""Which of the plain model's sentences tell something of their question.

In: drafts of answers, other questions. Out: the sentences that are likelier after this question than after others,
by the plain model's own probabilities; no other model is asked, least of all the one that measures.
"""

import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch

from backtalk_worker.laptop_model.packing import Example, attending_packed, pack, packed_logits
from backtalk_worker.laptop_model.sentences import sentences_of, shortened
from backtalk_worker.model.load import LoadedModel

Say = Callable[[str], None]

OTHERS = 3
"""Questions that a sentence is held against."""
AT_ONCE = 16
"""Sentences that are read together."""
KEPT = 8
"""Sentences of a question."""
OF_A_DRAFT = 4
WORDS_MAX = 18
LONG_WORD = re.compile(r"[a-z]{5,}")
REFERS = re.compile(
    r"(next|then|finally|also|additionally|however|therefore|once|after that|another|lastly|this|that|these|those|"
    r"they|it|he|she|here)\b",
    re.IGNORECASE,
)
"""Beginnings of a sentence that leans on another."""


@dataclass(frozen=True)
class Telling:
    """By how much likelier an answer is after its question than after others, in words that the question lacks."""

    nats: float
    a_token: float


def candidates(drafts: Sequence[str], question: str) -> list[str]:
    """Sentences that stand alone, with two long words or more that the question lacks; without repeats."""
    asked = stems(question)
    found = (
        short
        for draft in drafts
        for sentence in sentences_of(draft)[:OF_A_DRAFT]
        if (short := shortened(sentence, WORDS_MAX)) and not REFERS.match(short) and len(stems(short) - asked) >= 2
    )
    return list(dict.fromkeys(found))


def stems(text: str) -> set[str]:
    """Beginnings of the long words, so that one in the plural is the same."""
    return {word[:5] for word in LONG_WORD.findall(text.lower())}


def most_telling(model: LoadedModel, drafts: Mapping[str, Sequence[str]], seed: int, say: Say) -> dict[str, list[str]]:
    """For each question its best sentences, best first."""
    rng = random.Random(seed)
    told: dict[str, list[str]] = {}
    for question, listed in drafts.items():
        others = rng.sample([other for other in drafts if other != question], OTHERS)
        told[question] = best_of(model, question, others, candidates(listed, question))
        if len(told) % 50 == 0:
            say(f"weighed the sentences of {len(told)} of {len(drafts)} questions")
    return told


def best_of(model: LoadedModel, question: str, others: Sequence[str], sentences: Sequence[str]) -> list[str]:
    """Those that tell most, at most `KEPT` of them."""
    scores = telling(model, question, others, sentences) if sentences else []
    ordered = sorted(zip((one.a_token for one in scores), sentences, strict=True), reverse=True)
    return [sentence for _, sentence in ordered[:KEPT]]


@torch.inference_mode()
def telling(model: LoadedModel, question: str, others: Sequence[str], sentences: Sequence[str]) -> list[Telling]:
    """log p(sentence | question) less its mean over the other questions."""
    answers = [model.encode(one) for one in sentences]
    after = [_logprobs(model, one, answers) for one in (question, *others)]
    asked = stems(question)
    scores: list[Telling] = []
    for at, ids in enumerate(answers):
        new = torch.tensor([0.0 if _word_at(model, ids, place) in asked else 1.0 for place in range(len(ids))])
        gap = after[0][at] - torch.stack([row[at] for row in after[1:]]).mean(0)
        nats = (gap * new).sum()
        scores.append(Telling(float(nats), float(nats / new.sum().clamp(min=1))))
    return scores


def _word_at(model: LoadedModel, ids: Sequence[int], place: int) -> str:
    """The stem of the word that a token belongs to."""
    start = place
    while start > 0 and not model.decode(ids[start : start + 1]).startswith((" ", "\n")):
        start -= 1
    end = place + 1
    while end < len(ids) and model.decode(ids[end : end + 1])[:1].isalpha():
        end += 1
    return model.decode(ids[start:end]).strip().lower()[:5]


def _logprobs(model: LoadedModel, question: str, answers: Sequence[Sequence[int]]) -> list[torch.Tensor]:
    """The question is read once for all of them."""
    prompt = model.render_chat([{"role": "user", "content": question}])
    scored: list[torch.Tensor] = []
    with attending_packed(model.network):
        for start in range(0, len(answers), AT_ONCE):
            part = answers[start : start + AT_ONCE]
            packed = pack([Example(prompt, list(ids), told=True) for ids in part], len(prompt) - 1)
            logits = packed_logits(model.network, packed)
            wanted = torch.tensor([token for ids in part for token in ids])
            picked = logits.gather(1, wanted[:, None])[:, 0] - logits.logsumexp(1)
            scored += picked.split([len(ids) for ids in part])
    return scored
