"""Whether a model's chat template can open an answer: `python -m backtalk_worker.model.template DIR`.

In: a model's folder. Out: exit code 0, or 1 with one line on standard error. Weights are not read.
"""

import argparse
import sys
from pathlib import Path

from transformers import AutoTokenizer, PreTrainedTokenizerBase

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
        problem = problem_of_template(AutoTokenizer.from_pretrained(str(given.folder), local_files_only=True))
    except (OSError, ValueError) as error:
        problem = f"its tokenizer cannot be read ({str(error).partition(chr(10))[0]})"
    sys.stderr.write(f"{problem}\n" if problem else "")
    return 1 if problem else 0


if __name__ == "__main__":
    exit_at_signal()
    sys.exit(main())
