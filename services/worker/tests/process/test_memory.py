"""What a process holds after it freed large blocks that stood between small ones."""

import subprocess
import sys

import pytest

# Once a large block was freed, the library takes later ones from among the small, unless it is told otherwise.
PROGRAM = """
import ctypes, sys
from pathlib import Path
from backtalk_worker.process.memory import give_back_large_blocks
if sys.argv[1] == "told" and not give_back_large_blocks():
    sys.exit(3)
library = ctypes.CDLL(None)
library.malloc.restype = ctypes.c_void_p
library.malloc.argtypes = [ctypes.c_size_t]
library.free.argtypes = [ctypes.c_void_p]
def taken(size):
    block = library.malloc(size)
    ctypes.memset(block, 1, size)
    return block
library.free(taken(8 << 20))
blocks = [(taken(1 << 20), taken(64 << 10)) for _ in range(128)]
for large, _ in blocks:
    library.free(large)
status = Path("/proc/self/status").read_text().splitlines()
print(next(int(line.split()[1]) // 1024 for line in status if line.startswith("VmRSS")))
"""


def resident_mb(told: str) -> int:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, told], capture_output=True, text=True, timeout=60, check=False
    )
    if done.returncode == 3:
        pytest.skip("this C library has no such bound")
    return int(done.stdout)


def test_freed_blocks_leave_the_process():
    assert resident_mb("untold") - resident_mb("told") > 100
