"""The scorer's lines: a JSON request in, a JSON answer out, never an exception.

- `{"id", "op": "score", "rule", "groups": {name: [{"question", "answer", "ended"}, ...]}}` → `{"id", "groups": {name:
  {"count", "questions", "means", "answers": [scores]}}}`; `rule` says when an answer violates the wish (see `rule.py`).
- `{"id", "op": "check", "rule"}` → `{"id", "groups": {}}`: the rule can be scored by.
- `{"id", "op": "compare", "rule", "base": [...], "hinted": [...], "seed"}` → the same for the groups `first_sentence`
  (of base) and `shuffled` (of hinted), each with its `texts`. Either list may be left out.
- anything else → `{"id", "error": {"code", "message"}}`, codes `not_json`, `request_invalid`, `internal`.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any, cast

from scoring.answer import Answer
from scoring.embedding import Embedder
from scoring.rows import first_sentences, shuffled
from scoring.rule import Rule, obeys_by
from scoring.score import mean_scores, score_answers

ANSWERS_MAX = 10_000
Json = dict[str, Any]


class _InvalidRequest(Exception):  # noqa: N818
    """Its words go to the caller, and never quote a text."""


def answer_line(line: str, embedder: Embedder) -> str:
    """One line of answer, without its line break."""
    request: Json = {}
    try:
        read: Any = json.loads(line)
        if not isinstance(read, dict):
            raise _InvalidRequest("a request is a JSON object")
        request = cast(Json, read)
        return json.dumps({"id": request.get("id"), "groups": _answered(request, embedder)})
    except json.JSONDecodeError:
        return _error(None, "not_json", "the line is not JSON")
    except _InvalidRequest as error:
        return _error(request.get("id"), "request_invalid", str(error))
    except Exception as error:
        return _error(request.get("id"), "internal", type(error).__name__)


def _answered(request: Json, embedder: Embedder) -> Json:
    operations: Mapping[str, Callable[[Json, Rule, Embedder], Json]] = {
        "check": lambda *_: {},
        "score": _score,
        "compare": _compare,
    }
    operation = operations.get(str(request.get("op")))
    if operation is None:
        raise _InvalidRequest(f"op must be one of {', '.join(operations)}")
    try:
        obeys = obeys_by(request.get("rule"))
    except ValueError as error:
        raise _InvalidRequest(str(error)) from error
    return operation(request, obeys, embedder)


def _score(request: Json, obeys: Rule, embedder: Embedder) -> Json:
    groups = request.get("groups")
    if not isinstance(groups, dict) or not groups:
        raise _InvalidRequest("groups must be an object of lists of answers")
    return {str(name): _group(_answers(rows), obeys, embedder) for name, rows in cast(Json, groups).items()}


def _compare(request: Json, obeys: Rule, embedder: Embedder) -> Json:
    seed = request.get("seed", 0)
    if not isinstance(seed, int):
        raise _InvalidRequest("seed must be a whole number")
    made: dict[str, list[Answer]] = {}
    if "base" in request:
        made["first_sentence"] = first_sentences(_answers(request["base"]))
    if "hinted" in request:
        made["shuffled"] = shuffled(_answers(request["hinted"]), seed)
    if not made:
        raise _InvalidRequest("compare needs base, hinted or both")
    return {
        name: {**_group(answers, obeys, embedder), "texts": [answer.text for answer in answers]}
        for name, answers in made.items()
    }


def _group(answers: list[Answer], obeys: Rule, embedder: Embedder) -> Json:
    scores = score_answers(answers, obeys, embedder)
    return {
        "count": len(answers),
        "questions": len({answer.question for answer in answers}),
        "means": mean_scores(scores),
        "answers": [asdict(score) for score in scores],
    }


def _answers(rows: object) -> list[Answer]:
    if not isinstance(rows, list) or not 0 < len(cast(list[Any], rows)) <= ANSWERS_MAX:
        raise _InvalidRequest(f"a group is a list of 1 to {ANSWERS_MAX} answers")
    return [_answer(row) for row in cast(list[Any], rows)]


def _answer(row: object) -> Answer:
    fields = cast(Json, row) if isinstance(row, dict) else {}
    question, text, ended = fields.get("question"), fields.get("answer"), fields.get("ended")
    if not isinstance(question, str) or not isinstance(text, str) or not isinstance(ended, bool):
        raise _InvalidRequest("an answer has question and answer as text and ended as true or false")
    return Answer(question, text, ended)


def _error(request_id: object, code: str, message: str) -> str:
    return json.dumps({"id": request_id, "error": {"code": code, "message": message}})
