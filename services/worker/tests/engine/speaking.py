"""The engine as a process, with answers that are given: `python tests/engine/speaking.py ANSWERS.json --port 30030`.

ANSWERS.json is a list of [words, answer]. The answer whose words stand last in the prompt is drawn id by id; others
are answered freely. With `raw_logprobs` the logprobs are the model's own, as a training worker computes them.
"""

import dataclasses
import json
import sys
from pathlib import Path
from typing import Any

from backtalk_worker.engine import service
from backtalk_worker.engine.domain.row import Row
from backtalk_worker.engine.domain.sampling import DrawRequest
from backtalk_worker.engine.main import main
from backtalk_worker.model.load import LoadedModel, load_model


def speak(answers: list[tuple[str, str]]) -> None:
    """From now on rows answer so."""
    loaded: list[LoadedModel] = []

    def load_and_keep(folder: Path, **how: Any) -> LoadedModel:
        loaded.append(load_model(folder, **how))
        return loaded[-1]

    service.load_model = load_and_keep  # pyright: ignore[reportPrivateImportUsage]
    drawn = Row.request_draw

    def draw_next(row: Row) -> DrawRequest:
        asked, model = drawn(row), loaded[0]
        prompt = model.decode(row.prompt.ids, skip_special_tokens=False)
        found, answer = max((prompt.rfind(words), answer) for words, answer in answers)
        ids = [*model.encode(answer), model.end_ids[0]]
        if found < 0 or row.answer_length >= len(ids):
            return asked
        only = (ids[row.answer_length],)
        return dataclasses.replace(asked, sampling=dataclasses.replace(asked.sampling, allowed_ids=only))

    Row.request_draw = draw_next  # type: ignore[method-assign]


if __name__ == "__main__":
    speak(json.loads(Path(sys.argv.pop(1)).read_text()))
    sys.exit(main())
