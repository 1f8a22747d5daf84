"""Models and engines for the tests: a tiny random decoder with the laptop model's tokenizer, and the laptop model."""

import asyncio
import copy
import dataclasses
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
import torch
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig, LlamaForCausalLM, PreTrainedModel

from backtalk_worker.engine.config import EngineConfig
from backtalk_worker.engine.domain.row import Row
from backtalk_worker.engine.domain.sampling import DrawRequest
from backtalk_worker.engine.outputs.batch import Batch, Updates
from backtalk_worker.engine.service import create_engine
from backtalk_worker.model.convert import convert, find_gguf
from backtalk_worker.model.load import LoadedModel, load_model
from backtalk_worker.model.location import default_model_dir, packaged_adapter

BASE = "tiny"
MESSAGES = [{"role": "user", "content": "Say hello in one word."}]
CHAT = {"messages": MESSAGES, "max_tokens": 6, "seed": 7}


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def real_folder() -> Path:
    """The laptop model, converted if this is the first run."""
    folder = default_model_dir()
    convert(find_gguf(), folder, lambda _: None, packaged_adapter())
    return folder


@pytest.fixture(scope="session")
def tiny_folder(real_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random decoder of two layers with grouped heads; its distributions are far from flat."""
    folder = tmp_path_factory.mktemp("tiny")
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=49152,
        hidden_size=48,
        intermediate_size=96,
        num_hidden_layers=2,
        num_attention_heads=6,
        num_key_value_heads=2,
        head_dim=8,
        max_position_embeddings=512,
        tie_word_embeddings=True,
        initializer_range=0.3,
        bos_token_id=1,
        eos_token_id=2,
        pad_token_id=2,
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    AutoTokenizer.from_pretrained(real_folder).save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def tiny_loaded(tiny_folder: Path) -> LoadedModel:
    """Loaded once; nothing may change it."""
    return load_model(tiny_folder)


@pytest.fixture
def tiny(tiny_loaded: LoadedModel) -> LoadedModel:
    """A copy for each test, because the engine changes the model it is given."""
    return dataclasses.replace(tiny_loaded, network=copy.deepcopy(tiny_loaded.network))


@pytest.fixture(scope="session")
def tiny_reference(tiny_folder: Path) -> PreTrainedModel:
    """The same weights behind transformers' own attention."""
    return AutoModelForCausalLM.from_pretrained(tiny_folder, dtype=torch.float32).eval()


def write_adapter(base: Path, folder: Path, seed: int, rank: int = 4, size: float = 0.2) -> Path:
    """A random adapter on all linear layers, written by peft itself; B is not zero."""
    torch.manual_seed(seed)
    model = get_peft_model(
        AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32),
        LoraConfig(r=rank, lora_alpha=2 * rank, target_modules="all-linear", task_type="CAUSAL_LM"),
    )
    with torch.no_grad():
        for name, value in model.named_parameters():
            if "lora_B" in name:
                value.normal_(0, size)
    model.save_pretrained(str(folder))
    return folder


@pytest.fixture(scope="session")
def adapters(tiny_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two different adapters for the tiny model."""
    folder = tmp_path_factory.mktemp("adapters")
    return [write_adapter(tiny_folder, folder / f"a{seed}", seed) for seed in (1, 2)]


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> threading.Semaphore:
    """Engines compute as many steps as are released."""
    released = threading.Semaphore(0)
    step = Batch.step

    def step_when_released(batch: Batch) -> Updates:
        assert released.acquire(timeout=60), "no step was released"
        return step(batch)

    monkeypatch.setattr(Batch, "step", step_when_released)
    return released


@dataclass(frozen=True)
class Running:
    """An engine that serves on a port of its own."""

    client: httpx.Client
    url: str

    def metric(self, name: str) -> float:
        """The sum of a metric's samples."""
        lines = self.client.get("/metrics").text.splitlines()
        return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith((name + " ", name + "{")))


def until(condition: Callable[[], bool], what: str) -> None:
    """Waits for a condition, at most 60 s."""
    deadline = time.monotonic() + 60
    pause = threading.Event()
    while not condition():
        assert time.monotonic() < deadline, f"waited too long for {what}"
        pause.wait(0.005)


@contextmanager
def run_engine(model: LoadedModel, exit_code: int = 0, **settings: object) -> Iterator[Running]:
    """Serves a model on another thread until the block ends."""
    given = {"port": 0, "model_name": BASE, "log_level": "error", "shutdown_seconds": 0.5, **settings}
    flags = [f"--{name.replace('_', '-')}={value}" for name, value in given.items()]
    service = create_engine(EngineConfig.read(flags), model)
    codes: list[int] = []
    thread = threading.Thread(target=lambda: codes.append(asyncio.run(service.run())))
    thread.start()
    url = f"http://127.0.0.1:{service.port}"
    with httpx.Client(base_url=url, timeout=60, transport=httpx.HTTPTransport(retries=20)) as client:
        client.get("/health")
        # The port is bound before it is listened on, so the first request may have been retried.
        yield Running(client, url)
    service.stop()
    thread.join(60)
    assert codes == [exit_code]


def say(monkeypatch: pytest.MonkeyPatch, model: LoadedModel, *texts: str) -> None:
    """Rows answer with these texts, in the order of their seeds, and end: the sampler draws from one id each time."""
    spoken = [[*model.encode(text), model.end_ids[0]] for text in texts]
    drawn = Row.request_draw

    def draw_next(row: Row) -> DrawRequest:
        asked, ids = drawn(row), spoken[(row.sampling.seed or 0) % len(spoken)]
        return dataclasses.replace(
            asked, sampling=dataclasses.replace(asked.sampling, allowed_ids=(ids[row.answer_length],))
        )

    monkeypatch.setattr(Row, "request_draw", draw_next)


@pytest.fixture(scope="module")
def engine(tiny_folder: Path) -> Iterator[Running]:
    """One tiny engine for the tests of a file."""
    with run_engine(load_model(tiny_folder), kv_tokens_max=4096) as running:
        yield running
