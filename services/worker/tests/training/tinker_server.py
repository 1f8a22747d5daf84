"""A stand-in for a training service with Tinker's API: small models, real gradients, JSON over HTTP as SDK 0.16 has it.

It computes with PEFT, autograd and torch's AdamW, and with nothing of this worker. With `like="skyrl"` it does what
SkyRL's open server of that API (skyrl-tx 0.3.0) was seen to do otherwise: losses are means over each text's tokens and
then over texts, paths of samplers lack a part, nothing is said of a first token or of the gradient, nothing is removed.
`asked` has the routes of what it was asked for.
By itself: `python tests/training/tinker_server.py MODEL_DIR PORT ALPHA`.
"""

import copy
import io
import itertools
import sys
import tarfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

import torch
import uvicorn
from peft import LoraConfig, get_peft_model
from peft.utils.save_and_load import get_peft_model_state_dict
from safetensors.torch import save
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route
from transformers import AutoModelForCausalLM

KEY = "tml-of-the-test"
NAME = "org/tiny"
LAYERS = {"train_unembed": False, "train_mlp": True, "train_attn": True}


class RefusedError(Exception):
    """What a future ends with."""


class TinkerServer:
    """The models, runs and checkpoints of one service."""

    def __init__(self, model: Any, alpha: int, like: Literal["tinker", "skyrl"] = "tinker") -> None:
        self._model = model
        self._alpha = alpha
        self._is_open = like == "skyrl"
        self._runs: dict[str, Any] = {}
        self._saved: dict[str, Any] = {}
        self._samplers: dict[str, Any] = {}
        self._results: dict[str, Any] = {}
        self._numbers = itertools.count()
        self._lock = threading.Lock()
        self.asked: list[str] = []
        self.fails: dict[str, int] = {}
        """Status by route, for as long as it stands here."""
        self.head: float | None = None
        """What stands in a head that is written down, too."""
        self.spoils = False
        """Whether weights come out that are no numbers."""
        self.url = ""

    @contextmanager
    def serving(self, port: int = 0) -> Iterator[str]:
        """Its address while it serves."""
        routes = [
            Route("/api/v1/training_runs/{run}/checkpoints/{name:path}/archive", self._archive_url),
            Route("/api/v1/training_runs/{run}/checkpoints/{name:path}", self._delete, methods=["DELETE"]),
            Route("/files/{run}/{name:path}", self._archive),
            Route("/api/v1/get_server_capabilities", self._answer),
            Route("/api/v1/{route}", self._answer, methods=["POST"]),
        ]
        config = uvicorn.Config(Starlette(routes=routes), host="127.0.0.1", port=port, log_level="error")
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.01)
        self.url = f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
        try:
            yield self.url
        finally:
            server.should_exit = True
            thread.join()

    @property
    def running(self) -> int:
        """Runs that have a place."""
        return len(self._runs)

    @property
    def kept(self) -> list[str]:
        """Paths of all checkpoints."""
        return sorted(self._saved)

    async def _answer(self, request: Request) -> Response:
        route = request.path_params.get("route", "get_server_capabilities")
        self.asked.append(route)
        if request.headers.get("x-api-key") != KEY:
            return JSONResponse({"detail": "no such key"}, 401)
        if route in self.fails:
            return JSONResponse({"detail": f"{route} is broken"}, self.fails[route])
        body = await request.json() if request.method == "POST" else {}
        match route:
            case "get_server_capabilities":
                return JSONResponse({"supported_models": [{"model_name": NAME}]})
            case "create_session":
                return JSONResponse({"type": "create_session", "session_id": "session"})
            case "session_heartbeat":
                return JSONResponse({"type": "session_heartbeat"})
            case "create_sampling_session":
                name = f"sampler-{next(self._numbers)}"
                self._samplers[name] = body
                return JSONResponse({"type": "create_sampling_session", "sampling_session_id": name})
            case "weights_info":
                run = self._saved.get(body["tinker_path"])
                if run is None:
                    return JSONResponse({"detail": "no such checkpoint"}, 404)
                return JSONResponse({"base_model": NAME, "is_lora": True, "lora_rank": run[0]} | LAYERS)
            case "retrieve_future":
                return JSONResponse(self._results.pop(body["request_id"]))
        number = f"future-{next(self._numbers)}"
        with self._lock:
            try:
                self._results[number] = getattr(self, f"_{route}")(body)
            except RefusedError as error:
                self._results[number] = {"error": str(error), "category": "user"}
        return JSONResponse({"request_id": number})

    def _create_model(self, body: Any) -> Any:
        config = body["lora_config"]
        if body["base_model"] != NAME or config["train_unembed"]:
            raise RefusedError(f"{body['base_model']} is not trained here so")
        name = f"run-{next(self._numbers)}"
        self._runs[name] = self._adapted(config["rank"], config.get("seed") or 0)
        return {"model_id": name, "type": "create_model"}

    def _adapted(self, rank: int, seed: int) -> Any:
        torch.manual_seed(seed)
        layers = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
        config = LoraConfig(r=rank, lora_alpha=self._alpha, target_modules=layers, task_type="CAUSAL_LM")
        model = get_peft_model(copy.deepcopy(self._model), config).eval()
        parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
        return rank, model, torch.optim.AdamW(parameters, lr=0.0)

    def _forward(self, body: Any) -> Any:
        with torch.no_grad():
            return self._passed(body["forward_input"], self._runs[body["model_id"]][1])[1]

    def _forward_backward(self, body: Any) -> Any:
        loss, output = self._passed(body["forward_backward_input"], self._runs[body["model_id"]][1])
        loss.backward()
        return output

    def _passed(self, given: Any, model: Any) -> tuple[torch.Tensor, Any]:
        losses: list[torch.Tensor] = []
        outputs: list[Any] = []
        for datum in given["data"]:
            inputs = {name: value["data"] for name, value in datum["loss_fn_inputs"].items()}
            ids = [token for chunk in datum["model_input"]["chunks"] for token in chunk["tokens"]]
            logprobs = _logprobs(model, ids, inputs["target_tokens"])
            if given["loss_fn"] == "cross_entropy":
                loss = -logprobs * torch.tensor(inputs["weights"])
            elif given["loss_fn"] == "importance_sampling":
                old, advantages = (torch.tensor(inputs[name]).double() for name in ("logprobs", "advantages"))
                loss = -(logprobs - old).exp() * advantages
            else:
                raise RefusedError(f"no loss {given['loss_fn']}")
            losses.append(loss.mean() / len(given["data"]) if self._is_open else loss.sum())
            row = {"data": logprobs.tolist(), "dtype": "float32", "shape": [len(logprobs)]}
            outputs.append({"logprobs": row})
        metrics = {"loss:sum": sum(float(loss.detach().sum()) for loss in losses)}
        output = {"loss_fn_output_type": "ArrayRecord", "loss_fn_outputs": outputs, "metrics": metrics}
        return torch.stack(losses).sum(), output

    def _optim_step(self, body: Any) -> Any:
        _, model, optimizer = self._runs[body["model_id"]]
        given = body["adam_params"]
        parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
        bound = given["grad_clip_norm"] or float("inf")
        norm = float(torch.nn.utils.clip_grad_norm_(parameters, bound))
        for group in optimizer.param_groups:
            group |= {"lr": given["learning_rate"], "betas": (given["beta1"], given["beta2"]), "eps": given["eps"]}
            group["weight_decay"] = given["weight_decay"]
        optimizer.step()
        optimizer.zero_grad()
        return {"metrics": None if self._is_open else {"grad_norm": norm}}

    def _save(self, body: Any, kind: str) -> str:
        place = body["path"] if self._is_open and kind == "sampler_weights" else f"{kind}/{body['path']}"
        path = f"tinker://{body['model_id']}/{place}"
        if path in self._saved:
            raise RefusedError(f"{path} is there")
        rank, model, optimizer = self._runs[body["model_id"]]
        weights = {name: value.clone() for name, value in get_peft_model_state_dict(model).items()}
        self._saved[path] = rank, weights, copy.deepcopy(optimizer.state_dict())
        return path

    def _save_weights(self, body: Any) -> Any:
        return {"path": self._save(body, "weights"), "type": "save_weights"}

    def _save_weights_for_sampler(self, body: Any) -> Any:
        return {"path": self._save(body, "sampler_weights"), "type": "save_weights_for_sampler"}

    def _unload_model(self, body: Any) -> Any:
        if self._is_open:
            del self._runs[body["model_id"]]
        return {"model_id": body["model_id"], "type": "unload_model"}

    def _load_weights(self, body: Any) -> Any:
        if body["path"] not in self._saved:
            raise RefusedError(f"no checkpoint {body['path']}")
        _, weights, state = self._saved[body["path"]]
        _, model, optimizer = self._runs[body["model_id"]]
        _set(model, weights)
        if body.get("optimizer"):
            optimizer.load_state_dict(copy.deepcopy(state))
        return {"path": body["path"], "type": "load_weights"}

    def _asample(self, body: Any) -> Any:
        sampler = self._samplers[body["sampling_session_id"]]
        model = self._model
        if sampler.get("model_path"):
            if sampler["model_path"] not in self._saved:
                raise RefusedError(f"no checkpoint {sampler['model_path']}")
            rank, weights, _ = self._saved[sampler["model_path"]]
            model = self._adapted(rank, 0)[1]
            _set(model, weights)
        ids = [token for chunk in body["prompt"]["chunks"] for token in chunk["tokens"]]
        given = body["sampling_params"]
        generator = torch.Generator().manual_seed(given.get("seed") or 0)
        answer: list[int] = []
        with torch.no_grad():
            while len(answer) < given["max_tokens"] and not (answer and answer[-1] in (given.get("stop") or ())):
                logits = model(input_ids=torch.tensor([[*ids, *answer]])).logits[0, -1] / given.get("temperature", 1.0)
                answer.append(int(torch.multinomial(logits.softmax(-1), 1, generator=generator)))
            asked = None
            if body.get("prompt_logprobs"):
                first = [] if self._is_open else [None]
                asked = [*first, *_logprobs(model, ids[:-1], ids[1:]).tolist()]
        sequence = {"stop_reason": "length", "tokens": answer, "logprobs": [0.0] * len(answer)}
        return {"sequences": [sequence], "type": "sample", "prompt_logprobs": asked}

    async def _archive_url(self, request: Request) -> Response:
        return RedirectResponse(f"{self.url}/files/{_place(request)}", 302)

    async def _archive(self, request: Request) -> Response:
        rank, weights, _ = self._saved[f"tinker://{_place(request)}"]
        if self.spoils:
            weights = {name: value * float("nan") for name, value in weights.items()}
        if self.head is not None:
            parts = {f"base_model.model.lm_head.lora_{part}.weight": torch.full((2, 2), self.head) for part in "AB"}
            weights = weights | parts
        config = f'{{"r": {rank}, "lora_alpha": {self._alpha}, "target_modules": null, "peft_type": "LORA"}}'
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w:gz") as archive:
            for name, data in (
                ("adapter_model.safetensors", save(weights)),
                ("adapter_config.json", config.encode()),
            ):
                entry = tarfile.TarInfo(f"./{name}")
                entry.size = len(data)
                archive.addfile(entry, io.BytesIO(data))
        return Response(packed.getvalue())

    async def _delete(self, request: Request) -> Response:
        if self._is_open:
            return JSONResponse({"detail": "Not Found"}, 404)
        del self._saved[f"tinker://{_place(request)}"]
        return Response(status_code=204)


def _place(request: Request) -> str:
    return "/".join(request.path_params[name] for name in ("run", "name"))


def _set(model: Any, weights: dict[str, torch.Tensor]) -> None:
    named = {name.replace(".default.", "."): value for name, value in model.named_parameters()}
    with torch.no_grad():
        for name, value in weights.items():
            named[name].copy_(value)


def _logprobs(model: Any, ids: list[int], targets: list[int]) -> torch.Tensor:
    logits = model(input_ids=torch.tensor([ids])).logits[0]
    return logits.log_softmax(-1).gather(-1, torch.tensor(targets)[:, None])[:, 0]


if __name__ == "__main__":
    folder, port, alpha = sys.argv[1:]
    torch.set_num_threads(1)
    base = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    with TinkerServer(base, int(alpha)).serving(int(port)):
        threading.Event().wait()
