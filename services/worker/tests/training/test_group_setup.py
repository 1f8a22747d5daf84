"""Two processes of which one cannot do what the other can, or is stopped: its error is that of both, and neither waits.

They are started as torchrun starts them, with a store of the test's.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from torch._C._distributed_c10d import TCPStore
from worker_process import DEADLINE_S, DEVICE, write_tiny_model

pytestmark = pytest.mark.skipif(DEVICE != "cpu", reason="each process would take a card of its own")

GROUP_SECONDS = 60
STEP = """
import os, sys
from pathlib import Path
from backtalk_worker.training.inputs import work
from backtalk_worker.training.inputs.decode import train_order
from backtalk_worker.training.inputs.orders import GroupOrder
from backtalk_worker.training.outputs.base_model import load_base_model
from backtalk_worker.training.outputs.process_group import ProcessGroup, leave
from backtalk_worker.training.outputs.version_files import VersionFiles
from tiny_policy import silent
from worker_process import train_request

folder, group = Path(os.environ["BACKTALK_MODEL_DIR"]), ProcessGroup("cpu", float(sys.argv[1]))
base = load_base_model(folder, "tiny", "cpu", "float64")
order = train_order(train_request(folder), base.loaded.vocabulary_size, base.loaded.context_length)
if group.rank == 1:
    vars(base)["target_modules"] = ("absent",)
files = VersionFiles(GroupOrder(order, {}))
try:
    group.apart(lambda: work.train(order, base, files, silent, group))
except Exception as error:
    sys.stderr.write(f"{error}\\n")
assert group.gather("ready") == ["ready", "ready"]
leave(0)
"""

STOPPED = """
import os, sys
from itertools import count
from pathlib import Path
from backtalk_worker.training.domain.network import Layout
from backtalk_worker.training.errors import StepCancelledError
from backtalk_worker.training.inputs import work
from backtalk_worker.training.inputs.decode import train_order
from backtalk_worker.training.inputs.orders import GroupOrder
from backtalk_worker.training.outputs.base_model import load_base_model
from backtalk_worker.training.outputs.process_group import ProcessGroup, leave
from backtalk_worker.training.outputs.version_files import VersionFiles
from worker_process import train_request

folder, group = Path(os.environ["BACKTALK_MODEL_DIR"]), ProcessGroup("cpu", float(sys.argv[1]))
base = load_base_model(folder, "tiny", "cpu", "bfloat16", layout=Layout(sharing=group))
request = train_request(folder, opd_form="hybrid", step_bound=1e-4)
order = train_order(request, base.loaded.vocabulary_size, base.loaded.context_length)
# The third of a bound whose numbers are coarse is where its covariance begins.
for phase, last in (("told", 1), ("step_bound", 0), ("step_bound", 2), ("probes", 0)):
    ticks = count()

    def progress(now, _number, micro_batches, _loss):
        if (now, micro_batches, group.rank) == (phase, 0, 0) and next(ticks) == last:
            raise StepCancelledError

    try:
        group.apart(lambda: work.train(order, base, VersionFiles(GroupOrder(order, {})), progress, group))
    except StepCancelledError:
        sys.stderr.write(f"stopped in {phase} at {last}\\n")
assert group.gather("ready") == ["ready", "ready"]
leave(0)
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tiny")
    write_tiny_model(folder)
    return folder


def run_both(command: list[str], tmp_path: Path, *models: Path) -> list[tuple[int, str]]:
    """Exit code and standard error of each, by rank."""
    store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    launched = {
        "TORCHELASTIC_RUN_ID": "test", "TORCHELASTIC_USE_AGENT_STORE": "True", "WORLD_SIZE": "2",
        "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(store.port), "GLOO_SOCKET_IFNAME": "lo",
        "PYTHONPATH": str(Path(__file__).parent), "BACKTALK_DEVICE": "cpu", "BACKTALK_NICE": "0",
        "BACKTALK_HEALTH_ADDRESS": "127.0.0.1:0", "BACKTALK_TRAINING_GROUP_SECONDS": str(GROUP_SECONDS),
        "BACKTALK_BLOB_CACHE_DIR": str(tmp_path),
    }  # fmt: skip
    processes = [
        subprocess.Popen(
            [sys.executable, *command],
            env={
                **os.environ,
                **launched,
                "RANK": str(rank),
                "LOCAL_RANK": str(rank),
                "BACKTALK_MODEL_DIR": str(folder),
            },
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank, folder in enumerate(models)
    ]
    try:
        said = [process.communicate(timeout=DEADLINE_S)[1] for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.wait()
    return [(process.returncode, words) for process, words in zip(processes, said, strict=True)]


def test_a_process_that_cannot_load_the_base_keeps_the_others_from_taking_calls(model: Path, tmp_path: Path):
    worker = ["-m", "backtalk_worker.training", "--address", "127.0.0.1:0"]
    (first, said), (other, cause) = run_both(worker, tmp_path, model, tmp_path / "none")
    assert (first, other) == (1, 1)
    assert "another process of the group failed" in said
    assert '"started"' not in said
    assert str(tmp_path / "none") in cause


def test_a_process_that_has_no_adapter_to_train_ends_the_step_of_all_and_the_group_goes_on(model: Path, tmp_path: Path):
    (first, said), (other, cause) = run_both(["-c", STEP, str(GROUP_SECONDS)], tmp_path, model, model)
    assert "another process of the group failed" in said
    assert "{'absent'} not found in the base model" in cause
    assert (first, other) == (0, 0)


def test_processes_that_share_the_base_stop_together_while_answers_are_drawn_and_the_step_is_bound(
    model: Path, tmp_path: Path
):
    # Rank 0 alone hears that the step is not wanted any more.
    (first, said), (other, also) = run_both(["-c", STOPPED, str(GROUP_SECONDS)], tmp_path, model, model)
    for words in (said, also):
        stopped = [line for line in words.splitlines() if line.startswith("stopped in")]
        assert stopped == [
            f"stopped in {place}" for place in ("told at 1", "step_bound at 0", "step_bound at 2", "probes at 0")
        ]
    assert (first, other) == (0, 0)
