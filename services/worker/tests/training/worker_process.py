"""A training worker as its own process on a tiny model, and a client that speaks the wire contract to it."""

import hashlib
import json
import os
import re
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import torch
from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

from backtalk_worker.gen.backtalk.v1 import training_pb2, training_pb2_grpc, weights_pb2
from backtalk_worker.model.load import load_model
from backtalk_worker.model.location import default_model_dir

DEVICE = os.environ.get("BACKTALK_TEST_DEVICE", "cpu")
"""Where workers compute."""
DEADLINE_S = 300
"""So long that only what hangs meets it, on a busy machine too."""
QUESTIONS = ("Why is the sky blue?", "How do I boil an egg?", "What is jazz?", "Who was Ada Lovelace?")
HINT = "Answer in one short sentence."


def write_tiny_model(folder: Path, seed: int = 0, width: int = 32, vocabulary: int = 49152, context: int = 512) -> None:
    """Random weights behind the laptop model's tokenizer and template."""
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=vocabulary, hidden_size=width, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=context, initializer_range=0.2, tie_word_embeddings=True,
        eos_token_id=2, pad_token_id=2,
    )  # fmt: skip
    LlamaForCausalLM(config).save_pretrained(folder)
    AutoTokenizer.from_pretrained(default_model_dir()).save_pretrained(folder)


class AsTrainer(
    grpc.UnaryUnaryClientInterceptor,
    grpc.UnaryStreamClientInterceptor,
    grpc.StreamUnaryClientInterceptor,
):
    """Says who calls, as the trainer does."""

    def _named(self, continuation: Any, details: Any, request: Any) -> Any:
        metadata = [*(details.metadata or ()), ("backtalk-caller", "trainer")]
        # Its own type is a named tuple that is not public.
        return continuation(details._replace(metadata=metadata), request)

    def intercept_unary_unary(self, continuation: Any, client_call_details: Any, request: Any) -> Any:
        return self._named(continuation, client_call_details, request)

    def intercept_unary_stream(self, continuation: Any, client_call_details: Any, request: Any) -> Any:
        return self._named(continuation, client_call_details, request)

    def intercept_stream_unary(self, continuation: Any, client_call_details: Any, request_iterator: Any) -> Any:
        return self._named(continuation, client_call_details, request_iterator)


@dataclass
class WorkerProcess:
    """One running worker."""

    process: subprocess.Popen[str]
    address: str
    health: str
    stub: training_pb2_grpc.TrainingWorkerServiceStub
    channel: grpc.Channel
    ranks: dict[int, int]
    """Process ids of those that take steps together, by rank; none where it is one."""

    def started_again(self) -> "WorkerProcess":
        """The same launcher with the processes that it starts next."""
        self.channel.close()
        return _started(self.process, len(self.ranks))

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        self.channel.close()

    def stop(self) -> int:
        """SIGTERM, and the exit code."""
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(timeout=DEADLINE_S)
        self.channel.close()
        return code

    def put(self, data: bytes, digest: str | None = None) -> str:
        name = digest or hashlib.sha256(data).hexdigest()
        parts = [
            training_pb2.PutBlobRequest(digest=name, data=data[:1000]),
            training_pb2.PutBlobRequest(data=data[1000:]),
        ]
        return self.stub.PutBlob(iter(parts), timeout=DEADLINE_S).digest

    def get(self, digest: str) -> bytes:
        parts = self.stub.GetBlob(training_pb2.GetBlobRequest(digest=digest), timeout=DEADLINE_S)
        return b"".join(part.data for part in parts)

    def train(
        self, request: training_pb2.TrainRequest
    ) -> tuple[list[training_pb2.TrainProgress], training_pb2.TrainResult]:
        events = list(self.stub.Train(request, timeout=DEADLINE_S))
        return [event.progress for event in events[:-1]], events[-1].result


def start_worker(model: Path, cache: Path, **environment: str) -> WorkerProcess:
    """Free ports are taken by the worker and read from its log."""
    given = {
        "BACKTALK_MODEL_DIR": str(model), "BACKTALK_BASE_MODEL": "tiny", "BACKTALK_BLOB_CACHE_DIR": str(cache),
        "BACKTALK_HEALTH_ADDRESS": "127.0.0.1:0", "BACKTALK_NICE": "0", "BACKTALK_DEVICE": DEVICE,
        "BACKTALK_DTYPE": "float32", **environment,
    }  # fmt: skip
    process = subprocess.Popen(
        [sys.executable, "-m", "backtalk_worker.training", "--address", "127.0.0.1:0"],
        env={**os.environ, **given},
        stderr=subprocess.PIPE,
        text=True,
    )
    processes = int(environment.get("BACKTALK_TRAINING_PROCESSES", "1"))
    return _started(process, processes if processes > 1 else 0)


def _started(process: subprocess.Popen[str], processes: int) -> WorkerProcess:
    """Reads the log until the worker has started, and all that share its steps."""
    assert process.stderr is not None
    started: dict[str, str] = {}
    ranks: dict[int, int] = {}
    for line in process.stderr:
        if '"msg": "joined"' in line:
            joined = json.loads(line)
            ranks[joined["rank"]] = joined["pid"]
        if '"msg": "started"' in line:
            started = json.loads(line)
        if started and len(ranks) == processes:
            channel = grpc.insecure_channel(started["address"])
            stub = training_pb2_grpc.TrainingWorkerServiceStub(grpc.intercept_channel(channel, AsTrainer()))
            return WorkerProcess(process, started["address"], started["health"], stub, channel, ranks)
    raise AssertionError("the worker did not start")


def train_request(model: Path, call: str = "batch_1", **config: object) -> training_pb2.TrainRequest:
    """Four hinted answers of random tokens, with the laptop's recipe."""
    loaded = load_model(model)
    generator = torch.Generator().manual_seed(4)
    samples = []
    for number, question in enumerate(QUESTIONS):
        prompt = loaded.render_chat([{"role": "user", "content": question}])
        hinted = loaded.render_chat([{"role": "user", "content": f"{question}\n\n{HINT}"}])
        answer = torch.randint(10, 49152, (6 + number,), generator=generator).tolist()
        logits = loaded.network(input_ids=torch.tensor([[*prompt, *answer]])).logits[0, len(prompt) - 1 : -1]
        known = torch.log_softmax(logits / 0.8, -1)[range(len(answer)), answer].tolist()
        samples.append(
            training_pb2.TrainSample(
                turn=f"turn_{number}",
                prompt_ids=prompt,
                answer_ids=answer,
                logprobs=known,
                temperature=0.8,
                advantage=-1.0,
                cut=True,
                teacher_prompt_ids=hinted,
            )
        )
    recipe = {
        "method": "combined", "opd_form": "full", "divergence": "reverse_kl", "weight_rl": 0.1, "weight_opd": 1.0,
        "lora_rank": 4, "lora_alpha": 8, "learning_rate": 5e-3, "adam_beta1": 0.9, "adam_beta2": 0.98,
        "gradient_clip": 1.0, "clip_low": 0.2, "clip_high": 0.28, "dual_clip": 3.0, "opd_advantage_clip": 2.0,
        "step_bound": 1.0, "kl_form": "full", "max_answer_tokens": 32, "micro_batch_tokens": 128, "optimizer_steps": 1,
        "jsd_beta": 0.5, "max_tokens": 512, "top_k": 20, "told_share": 0.5,
    }  # fmt: skip
    return training_pb2.TrainRequest(
        call=call, policy="backtalk", version="backtalk-v1", seed=7, samples=samples, mean_answer_length=40.0,
        config=training_pb2.TrainingConfig(**(recipe | config)),  # type: ignore[arg-type]
        probe_prompt_ids=[training_pb2.PromptIds(ids=loaded.render_chat([{"role": "user", "content": "Hello?"}]))],
    )  # fmt: skip


def child_of(
    request: training_pb2.TrainRequest, parent: training_pb2.TrainResult, call: str
) -> training_pb2.TrainRequest:
    """The same batch, from the parent's version."""
    child = training_pb2.TrainRequest()
    child.CopyFrom(request)
    child.call = call
    child.parent_adapter.extend(parent.adapter)
    child.parent_training_state.extend(parent.training_state)
    return child


def digests(files: list[weights_pb2.WeightsFile]) -> dict[str, str]:
    return {file.name: file.digest for file in files}


def error_code(error: grpc.RpcError) -> tuple[str, str]:
    """Code and retry from the trailers."""
    trailers: dict[str, str] = dict(error.trailing_metadata() or ())  # type: ignore[attr-defined,arg-type]
    return trailers["backtalk-code"], trailers["backtalk-retry"]


def without_seconds(result: training_pb2.TrainResult) -> bytes:
    """The result, less the one figure that no two runs share."""
    copy = training_pb2.TrainResult()
    copy.CopyFrom(result)
    copy.report.measurements["seconds"] = 0
    return copy.SerializeToString(deterministic=True)


def loaded_by(pid: int) -> str:
    """The libraries that a process has loaded, and whatever else it has mapped."""
    return Path(f"/proc/{pid}/maps").read_text()


def is_digest(name: str) -> bool:
    return re.fullmatch(r"[0-9a-f]{64}", name) is not None
