"""`npm run bench:gpu`: what training steps cost on a CUDA card, written into docs/gpu.md.

In: shapes of models, which get random weights, and lengths of samples. Out: for each a step's seconds, tokens a second,
share of the card's arithmetic (MFU) and memory; and how far a small step on the card is from the same step on the CPU.
On a CPU no page is written unless --page names one.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from shapes import shape_named

START, END = "<!-- figures -->", "<!-- end of figures -->"
PAGE = Path(__file__).parents[2] / "docs" / "gpu.md"


def main() -> int:
    """Measures, prints, and writes the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--shape",
        action="append",
        help="of a model, several times (default: qwen3-4b, qwen3-8b), as in shapes.py",
    )
    parser.add_argument("--tokens", default="2000,10000,32000", help="of the samples (default: %(default)s)")
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    parser.add_argument("--rank", type=int, default=16, help="of the adapter (default: %(default)s)")
    parser.add_argument("--teraflops", type=float, help="of the card in bfloat16, where it is not known")
    parser.add_argument("--page", type=Path, help="whose figures are replaced (on cuda: docs/gpu.md)")
    given = parser.parse_args()
    shapes = given.shape or ["qwen3-4b", "qwen3-8b"]
    problem = _problem(shapes, given.tokens, given.device)
    if problem:
        sys.stderr.write(f"{problem}\n")
        return 2
    # Imports torch, which takes seconds: what is refused is refused before.
    from gpu_figures import measured

    tokens = [int(one) for one in given.tokens.split(",")]
    lines = measured(shapes, tokens, given.device, given.rank, given.teraflops)
    page = given.page or (PAGE if given.device == "cuda" else None)
    if page is not None:
        _replace(page, lines)
        sys.stdout.write(f"written to {page}\n")
    return 0


def _problem(shapes: Sequence[str], tokens: str, device: str) -> str:
    """Why nothing can be measured; empty where all can."""
    try:
        for shape in shapes:
            shape_named(shape)
    except ValueError as error:
        return f"--shape: {error}"
    if not all(one.isdigit() and int(one) > 1 for one in tokens.split(",")):
        return f"--tokens '{tokens}' is no list of whole numbers, such as 2000,10000"
    if device == "cuda" and not _sees_a_card():
        return "--device cuda: torch sees no CUDA card (--device cpu --shape tiny tries the command)"
    return ""


def _sees_a_card() -> bool:
    import torch

    return torch.cuda.is_available()


def _replace(page: Path, lines: Sequence[str]) -> None:
    before, _, rest = page.read_text().partition(START)
    _, _, after = rest.partition(END)
    page.write_text(f"{before}{START}\n\n" + "\n".join(lines) + f"\n\n{END}{after}")


if __name__ == "__main__":
    sys.exit(main())
