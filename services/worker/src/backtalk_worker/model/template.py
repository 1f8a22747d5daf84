"""What a model's chat template can do: `python -m backtalk_worker.model.template DIR`.

In: a model's folder. Out: exit code 0, and one line that says which calls and thoughts are read out of answers; or 1
with one line on standard error, where the template opens no answer. Weights are not read.
"""

import argparse
import sys
from pathlib import Path

from transformers import AutoTokenizer, PreTrainedTokenizerBase

from backtalk_worker.model.answers.reading import answer_format
from backtalk_worker.process.first_signal import exit_at_signal

QUESTION = {"role": "user", "content": "q"}
ANSWER = "answer"


def problem_of_template(tokenizer: PreTrainedTokenizerBase) -> str:
    """Why answers cannot be asked for with this template; empty when they can.

    A prompt ends with what is added on request (`add_generation_prompt`), or the answer's text follows it at once.
    """
    try:
        ended, opened = _render(tokenizer, [QUESTION], opens=False), _render(tokenizer, [QUESTION], opens=True)
        whole = _render(tokenizer, [QUESTION, {"role": "assistant", "content": ANSWER}], opens=False)
    except Exception as error:  # A template may raise whatever it likes.
        return f"its chat template cannot render a question and an answer ({str(error).partition(chr(10))[0]})"
    follows = whole.startswith(opened) and whole[len(opened) :].lstrip().startswith(ANSWER)
    if opened == ended and not follows:
        return "its chat template has no generation prompt, so that no answer would be opened"
    return ""


def _render(tokenizer: PreTrainedTokenizerBase, messages: list[dict[str, str]], *, opens: bool) -> str:
    return str(tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=opens))


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m backtalk_worker.model.template", description=__doc__)
    parser.add_argument("folder", type=Path)
    given = parser.parse_args()
    try:
        tokenizer = AutoTokenizer.from_pretrained(str(given.folder), local_files_only=True)
    except (OSError, ValueError) as error:
        sys.stderr.write(f"its tokenizer cannot be read ({str(error).partition(chr(10))[0]})\n")
        return 1
    if problem := problem_of_template(tokenizer):
        sys.stderr.write(f"{problem}\n")
        return 1
    sys.stdout.write(f"{answer_format(tokenizer).reason}\n")
    return 0


if __name__ == "__main__":
    exit_at_signal()
    sys.exit(main())
