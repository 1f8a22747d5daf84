"""A training service with Tinker's API, through its SDK: the model is there, and here are only ids and numbers.

Every call has a deadline and is given up when the step is; what the service answers with becomes an error of this
worker. Files on the wire: a LoRA adapter in PEFT's format as an archive; all else stays there, under a path.
"""

import asyncio
import os
import secrets
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from backtalk_worker.process.errors import WorkerError
from backtalk_worker.training.domain.recipe import Recipe
from backtalk_worker.training.errors import (
    SdkMissingError,
    ServiceRefusedError,
    ServiceUnavailableError,
    StepCancelledError,
)
from backtalk_worker.training.outputs.adapter_archive import Archive, download, unpacked

ADAM_EPSILON = 1e-8
"""As torch has it."""
LOOK_S = 0.5
"""Between two looks at a call that takes long."""
CLEAR_S = 10
"""How long a call may take that only gives back what the service holds for a step."""

Reduction = Literal["sum", "mean"]
Tick = Callable[[], None]
T = TypeVar("T")


@dataclass(frozen=True)
class Texts:
    """Prompts with answers, as ids; answer tokens alone are predicted."""

    prompts: Sequence[Sequence[int]]
    answers: Sequence[Sequence[int]]

    def __iter__(self) -> Iterator[tuple[Sequence[int], Sequence[int]]]:
        return iter(zip(self.prompts, self.answers, strict=True))


class TinkerService:
    """Where the service is, and how to talk to it."""

    def __init__(self, url: str, key: str, model: str | None, reduction: Reduction, call_seconds: float) -> None:
        # The SDK would send what happens here to its maker, and keys of other services to this one.
        os.environ["TINKER_TELEMETRY"] = "0"
        for variable in ("TINKER_API_KEY", "CLOUDFLARE_ACCESS_CLIENT_ID", "CLOUDFLARE_ACCESS_CLIENT_SECRET"):
            os.environ.pop(variable, None)
        try:
            import tinker
        except ImportError as error:
            raise SdkMissingError from error
        self._sdk = tinker
        self._url = url
        self._key = key
        self._model = model
        self._reduction: Reduction = reduction
        self._seconds = call_seconds

    @contextmanager
    def session(self, tick: Tick) -> Generator["Session", None, None]:
        """For one step: nothing of it is left over for the next, which may find another service there."""
        calls = Calls(self._sdk, self._seconds, tick)
        client = self._opened(calls)
        try:
            yield Session(self._sdk, client, calls, self._model or _only_model(client, calls), self._reduction)
        finally:
            _let_go(client)

    def _opened(self, calls: "Calls") -> Any:
        """Whatever the service says to a first call is about address and key, which an operator can mend."""
        given_up = threading.Event()

        def create() -> Any:
            client = self._sdk.ServiceClient(base_url=self._url, api_key=self._key)
            if given_up.is_set():
                # Another session may be there by now.
                client.holder.close()
            return client

        try:
            return calls.done(create)
        except ServiceRefusedError as error:
            raise ServiceUnavailableError(str(error)) from error
        except BaseException:
            given_up.set()
            raise


def _let_go(client: Any) -> None:
    """Ends heartbeats, and what still asks for answers that nothing waits for: one session is there at a time."""
    loop = client.holder.get_loop()
    loop.call_soon_threadsafe(lambda: [task.cancel() for task in asyncio.all_tasks(loop)])


def _only_model(client: Any, calls: "Calls") -> str:
    """Of a service that trains one alone."""
    names = [str(model.model_name) for model in calls.done(client.get_server_capabilities).supported_models]
    if len(names) != 1:
        raise ServiceUnavailableError(f"it trains {len(names)} models, so BACKTALK_TINKER_MODEL is to name one of them")
    return names[0]


class Calls:
    """Waits for what the SDK does, no longer than the deadline, and as long as the step is wanted."""

    def __init__(self, sdk: Any, seconds: float, tick: Tick, patience: float = 0.0) -> None:
        self._sdk = sdk
        self._seconds = seconds
        self._tick = tick
        self._patience = patience
        """Seconds for which an answer is waited for once the step is not wanted any more."""

    def clearing(self) -> "Calls":
        """For what gives back: it is done for steps that nobody wants any more, too, and soon or not at all."""
        return Calls(self._sdk, min(self._seconds, CLEAR_S), lambda: None)

    def unbroken(self) -> "Calls":
        """For what leaves something at the service: its answer alone says where, so that it can be removed."""
        return Calls(self._sdk, self._seconds, self._tick, patience=CLEAR_S)

    def done(self, call: Callable[[], T]) -> T:
        """The SDK tries again by itself, for as long as it likes; the thread that waits for it is left to it."""
        future: Future[T] = Future()

        def run() -> None:
            try:
                future.set_result(call())
            except BaseException as error:
                future.set_exception(error)

        threading.Thread(target=run, name="tinker", daemon=True).start()
        until = time.monotonic() + self._seconds
        unwanted: StepCancelledError | None = None
        while True:
            if unwanted is None:
                try:
                    self._tick()
                except StepCancelledError as error:
                    unwanted, until = error, min(until, time.monotonic() + self._patience)
            if unwanted is not None and time.monotonic() >= until:
                raise unwanted
            try:
                return future.result(timeout=LOOK_S)
            except TimeoutError:
                if future.done():
                    # It came just now, or is an error of the SDK's own.
                    if future.exception() is None:
                        return future.result()
                    raise ServiceUnavailableError("it did not answer in time") from None
                if time.monotonic() > until:
                    raise ServiceUnavailableError(f"a call took more than {self._seconds:g} s") from None
            except Exception as error:
                raise self._known(error) from error

    def _known(self, error: Exception) -> WorkerError:
        """What the SDK raised, as an error of this worker. Refused is what the service says of the request itself."""
        sdk, words = self._sdk, _words_of(error)
        category: Any = getattr(error, "category", None)
        if isinstance(error, WorkerError):
            return error
        status = getattr(error, "status_code", None)
        is_said = isinstance(error, (sdk.RequestFailedError, ValueError)) or status in (400, 404, 409, 422)
        if isinstance(error, (sdk.AuthenticationError, sdk.PermissionDeniedError)):
            return ServiceUnavailableError(f"it does not take the key of BACKTALK_TINKER_KEY: {words}")
        if category is not None and category != sdk.types.RequestErrorCategory.User:
            return ServiceUnavailableError(words)
        return ServiceRefusedError(words) if is_said else ServiceUnavailableError(words)


def _words_of(error: Exception) -> str:
    """Without the bodies that services send back with a complaint: prompts may stand there."""
    body: Any = getattr(error, "body", None)
    status = getattr(error, "status_code", None)
    detail = body.get("detail") if isinstance(body, dict) else None
    said = str(error) if status is None else f"HTTP {status}" + (f", {detail}" if isinstance(detail, str) else "")
    return " ".join(said.split())[:200]


class Session:
    """One step's talk with the service."""

    def __init__(self, sdk: Any, client: Any, calls: Calls, model: str, reduction: Reduction) -> None:
        self._sdk = sdk
        self._client = client
        self._calls = calls
        self._model = model
        self._reduction: Reduction = reduction

    def fresh(self, rank: int, seed: int) -> "Run":
        """An adapter on the layers that this worker's own adapters change: all linear ones but the head."""
        return self._run(
            lambda: self._client.create_lora_training_client(
                self._model,
                rank=rank,
                # Seeds there are of 32 bits.
                seed=seed % 2**31,
                train_mlp=True,
                train_attn=True,
                train_unembed=False,
            )
        )

    def resumed(self, path: str) -> "Run":
        """An adapter with the state of its optimiser, as it was saved."""
        return self._run(lambda: self._client.create_training_client_from_state_with_optimizer(path))

    def base(self) -> "Sampler":
        client = self._calls.done(lambda: self._client.create_sampling_client(base_model=self._model))
        return Sampler(self._sdk, client, self._calls)

    def saved(self, path: str) -> "Sampler":
        client = self._calls.done(lambda: self._client.create_sampling_client(model_path=path))
        return Sampler(self._sdk, client, self._calls)

    def archive(self, path: str) -> Archive:
        """The adapter that was saved for samplers."""
        rest = self._client.create_rest_client()
        found = self._calls.done(lambda: rest.get_checkpoint_archive_url(*_run_and_checkpoint(path)).result())
        return unpacked(self._calls.done(lambda: download(str(found.url))))

    def answers_of(
        self, run: "Run", prompts: Sequence[Sequence[int]], tokens_max: int, end_ids: Sequence[int], seed: int
    ) -> list[list[int]]:
        """Of the weights that a run stands at."""
        path = run.save_for_samplers(f"answering-{secrets.token_hex(4)}")
        try:
            return self.saved(path).answers(prompts, tokens_max, end_ids, seed)
        finally:
            self.remove(path)

    def remove(self, path: str) -> None:
        """What was saved, and is not needed any more; a service that removes nothing keeps it."""
        rest = self._client.create_rest_client()
        with suppress(ServiceRefusedError, ServiceUnavailableError):
            self._calls.clearing().done(lambda: rest.delete_checkpoint(*_run_and_checkpoint(path)).result())

    def _run(self, create: Callable[[], Any]) -> "Run":
        return Run(self._sdk, self._calls.unbroken().done(create), self._calls, self._reduction)


class Run:
    """An adapter that is being trained there."""

    def __init__(self, sdk: Any, client: Any, calls: Calls, reduction: Reduction) -> None:
        self._sdk = sdk
        self._client = client
        self._calls = calls
        self._reduction: Reduction = reduction
        self._is_open = True

    def logprobs(self, texts: Texts) -> list[list[float]]:
        """Of the answers' tokens, under the weights as they stand, at temperature 1."""
        data = [
            self._datum(prompt, answer, {"weights": [0.0] * (len(prompt) - 1) + [1.0] * len(answer)})
            for prompt, answer in texts
        ]
        return self._logprobs_in(self._calls.done(lambda: self._client.forward(data, "cross_entropy").result()), texts)

    def backward(self, texts: Texts, old: Sequence[Sequence[float]], pulls: Sequence[Sequence[float]]) -> None:
        """Adds the gradient of −Σ_t c_t · π_θ/π_old. `pulls` are the c_t of each answer."""
        data: list[Any] = []
        for (prompt, answer), before, pull in zip(texts, old, pulls, strict=True):
            ahead = [0.0] * (len(prompt) - 1)
            # A service that takes means of each text's tokens, and then of the texts, is asked for so much more.
            whole = (len(ahead) + len(answer)) * len(texts.prompts) if self._reduction == "mean" else 1
            inputs = {"logprobs": [*ahead, *before], "advantages": [*ahead, *(whole * value for value in pull)]}
            data.append(self._datum(prompt, answer, inputs))
        self._calls.done(lambda: self._client.forward_backward(data, "importance_sampling").result())

    def step(self, recipe: Recipe, learning_rate: float) -> float | None:
        """AdamW. Gives the norm of the gradient where the service says it."""
        params = self._sdk.AdamParams(
            learning_rate=learning_rate,
            beta1=recipe.adam_beta1,
            beta2=recipe.adam_beta2,
            eps=ADAM_EPSILON,
            weight_decay=recipe.weight_decay,
            grad_clip_norm=recipe.gradient_clip,
        )
        done = self._calls.done(lambda: self._client.optim_step(params).result())
        norms = [value for name, value in (done.metrics or {}).items() if "grad" in name and "norm" in name]
        return float(norms[0]) if norms else None

    def close(self) -> None:
        """Gives its place at the service to others; one that is not given back is free some minutes later."""
        if not self._is_open:
            return
        self._is_open = False
        from tinker.lib.client_connection_pool_type import ClientConnectionPoolType

        holder, types = self._client.holder, self._sdk.types

        async def unload() -> None:
            with holder.aclient(ClientConnectionPoolType.TRAIN) as client:
                await client.models.unload(request=types.UnloadModelRequest(model_id=self._client.model_id))

        with suppress(ServiceRefusedError, ServiceUnavailableError):
            self._calls.clearing().done(lambda: holder.run_coroutine_threadsafe(unload()).result())

    def save_state(self, name: str) -> str:
        """Path of what the next step begins with."""
        return str(self._calls.unbroken().done(lambda: self._client.save_state(name).result()).path)

    def save_for_samplers(self, name: str) -> str:
        """Path of what samplers load."""
        return str(self._calls.unbroken().done(lambda: self._client.save_weights_for_sampler(name).result()).path)

    def _datum(self, prompt: Sequence[int], answer: Sequence[int], inputs: dict[str, list[float]]) -> Any:
        ids = [*prompt, *answer]
        return self._sdk.Datum(
            model_input=self._sdk.ModelInput.from_ints(ids[:-1]), loss_fn_inputs={"target_tokens": ids[1:], **inputs}
        )

    def _logprobs_in(self, output: Any, texts: Texts) -> list[list[float]]:
        rows = [list(map(float, one["logprobs"].data)) for one in output.loss_fn_outputs]
        return [row[len(prompt) - 1 :] for row, (prompt, _) in zip(rows, texts, strict=True)]


class Sampler:
    """Fixed weights there."""

    def __init__(self, sdk: Any, client: Any, calls: Calls) -> None:
        self._sdk = sdk
        self._client = client
        self._calls = calls

    def logprobs(self, texts: Texts) -> list[list[float]]:
        """Of the answers' tokens at temperature 1."""
        asked = [
            self._client.compute_logprobs(self._sdk.ModelInput.from_ints([*prompt, *answer]))
            for prompt, answer in texts
        ]
        rows = self._calls.done(lambda: [future.result() for future in asked])
        # Of the first token there is nothing to say: Tinker has null there, SkyRL's server leaves it out.
        return [list(map(float, row[len(row) - len(answer) :])) for row, (_, answer) in zip(rows, texts, strict=True)]

    def answers(
        self, prompts: Sequence[Sequence[int]], tokens_max: int, end_ids: Sequence[int], seed: int
    ) -> list[list[int]]:
        """Plain sampling at temperature 1; an answer holds the token that ended it."""
        asked = [
            self._client.sample(
                self._sdk.ModelInput.from_ints(list(prompt)),
                1,
                self._sdk.SamplingParams(
                    max_tokens=tokens_max, temperature=1.0, seed=(seed + place) % 2**31, stop=list(end_ids)
                ),
            )
            for place, prompt in enumerate(prompts)
        ]
        given = self._calls.done(lambda: [future.result() for future in asked])
        return [list(map(int, one.sequences[0].tokens)) for one in given]


def _run_and_checkpoint(path: str) -> tuple[str, str]:
    """Of `tinker://RUN/sampler_weights/NAME`, or of `tinker://RUN/NAME`, as SkyRL's server has it."""
    run, _, checkpoint = path.removeprefix("tinker://").partition("/")
    return run, checkpoint
