"""Generates the Python code of the wire contracts: .proto files in, the package `backtalk_worker.gen` out.

Run as `python -m backtalk_worker.proto_build [--from DIR]`. The generated code is never edited and never committed.
"""

import argparse
import re
import sys
from pathlib import Path

PACKAGE = "backtalk_worker.gen"
GENERATED = Path(__file__).parent / "gen"
SOURCES = Path(__file__).parents[4] / "proto"
# protoc writes imports as if its output folder were on the path; ours is a package.
IMPORT = re.compile(r"^(from |import )(backtalk\.v1\b)", re.MULTILINE)


def generate(sources: Path, target: Path) -> None:
    """Writes messages, type stubs and gRPC code for every contract below `sources`."""
    import grpc_tools
    from grpc_tools import protoc

    well_known = Path(grpc_tools.__file__).parent / "_proto"
    files = sorted(str(path.relative_to(sources)) for path in (sources / "backtalk").rglob("*.proto"))
    if not files:
        raise FileNotFoundError(f"no .proto file below {sources / 'backtalk'}")
    target.mkdir(parents=True, exist_ok=True)
    outputs = [f"--python_out={target}", f"--pyi_out={target}", f"--grpc_python_out={target}"]
    if protoc.main(["protoc", f"-I{sources}", f"-I{well_known}", *outputs, *files]):
        raise RuntimeError("protoc refused the contracts")
    for path in [*target.rglob("*.py"), *target.rglob("*.pyi")]:
        text = path.read_text()
        path.write_text(IMPORT.sub(rf"\1{PACKAGE}.\2", text))
    for folder in (target, target / "backtalk", target / "backtalk" / "v1"):
        (folder / "__init__.py").touch()


def main() -> int:
    """The command line: silent when it worked, one line and exit code 1 when not."""
    parser = argparse.ArgumentParser(prog="python -m backtalk_worker.proto_build", description=__doc__)
    parser.add_argument("--from", dest="sources", type=Path, default=SOURCES, help="folder of the contracts")
    try:
        generate(parser.parse_args().sources, GENERATED)
    except (OSError, ImportError, RuntimeError) as error:
        sys.stderr.write(f"cannot generate the code of the contracts: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
