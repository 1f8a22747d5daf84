"""The engine as the HTTP side sees it: names of models in, answers out as they grow, on the asyncio thread.

All of its own state belongs to the asyncio thread, so a name is resolved and its row submitted in one go.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from backtalk_worker.engine import errors
from backtalk_worker.engine.domain.request import Prompt, Sampling
from backtalk_worker.engine.events import EngineEvents
from backtalk_worker.engine.outputs.adapters import Adapter, load_adapter
from backtalk_worker.engine.outputs.batch import Batch, Ticket, Update, Updates
from backtalk_worker.engine.outputs.loop import GenerationLoop
from backtalk_worker.engine.outputs.network import RaggedNetwork


@dataclass(frozen=True, slots=True)
class EngineLimits:
    """Bounds on what is accepted."""

    requests_max: int
    """Rows running and waiting together; one more is refused."""
    adapters_max: int
    adapter_rank_max: int
    threads: int
    """Of torch, on the computing thread."""
    adapter_dir: Path | None
    """Adapters are loaded from below it; None = from anywhere."""


class Generation:
    """The rows of one request; iterate over it to the end, or cancel it."""

    def __init__(self, engine: "Engine", tickets: Sequence[Ticket]) -> None:
        self._engine = engine
        self._open = set(tickets)
        # Bounded by what the rows may produce: their max_tokens, and one update for the end of each.
        self._updates: asyncio.Queue[tuple[int, Update] | None] = asyncio.Queue()
        self._started = time.monotonic()
        self._is_new = True

    async def updates(self) -> AsyncIterator[tuple[int, Update]]:
        """(row index, update) in the order of generation, until all rows have ended or the generation is cancelled."""
        while self._open or not self._updates.empty():
            item = await self._updates.get()
            if item is None:
                return
            yield item

    def push(self, ticket: Ticket, update: Update) -> None:
        """Called by the engine with each update of one of its rows."""
        if self._is_new:
            self._is_new = False
            self._engine.events.first_token(time.monotonic() - self._started)
        if update.is_last:
            self._open.discard(ticket)
        self._updates.put_nowait((ticket.index, update))

    def cancel(self) -> None:
        """Frees the rows within one step, and ends the iteration. Cancelling what has ended does nothing."""
        if self._open:
            self._engine.withdraw(self._open)
            self._open = set()
            self._updates.put_nowait(None)


class Engine:
    """One base model, its adapters, and the loop that runs them."""

    def __init__(
        self, network: RaggedNetwork, batch: Batch, base_name: str, limits: EngineLimits, events: EngineEvents
    ) -> None:
        self._network = network
        self._limits = limits
        self.events = events
        self._asyncio: asyncio.AbstractEventLoop | None = None
        self._loop = GenerationLoop(
            batch,
            limits.threads,
            deliver=lambda updates: self._on_asyncio(self._dispatch, updates),
            on_death=lambda: self._on_asyncio(self._died),
            events=events,
        )
        self._owners: dict[Ticket, Generation] = {}
        self.adapters: dict[str, Adapter] = {}
        self._loading: set[str] = set()
        self._is_ending = False
        self.base_name = base_name
        self.created = int(time.time())

    @property
    def is_healthy(self) -> bool:
        return self._loop.is_alive

    def start(self, on_death: Callable[[], None]) -> None:
        """Begins to compute; the asyncio thread that calls this gets updates, and `on_death` when the loop fails."""
        self._asyncio = asyncio.get_running_loop()
        self._on_death = on_death
        self._loop.start()

    def stop(self) -> None:
        self._loop.stop()

    def abort_all(self) -> None:
        """Ends all answers early, with finish reason 'abort', and begins none any more."""
        self._is_ending = True
        self._loop.abort_all()

    def resolve(self, name: str | None) -> Adapter | None:
        """A model name → its adapter, or None for the base; an unknown name is an error."""
        if name is None or name == self.base_name:
            return None
        if name not in self.adapters:
            known = ", ".join([self.base_name, *self.adapters])
            raise errors.ModelNotFoundError(name, known, param="model")
        return self.adapters[name]

    def refuse_beyond_room(self, rows: int) -> None:
        """More rows than it ever takes, or than it can take now, are an error."""
        if rows > self._limits.requests_max:
            raise errors.TooManyRowsError(rows, self._limits.requests_max)
        if len(self._owners) + rows > self._limits.requests_max:
            raise errors.EngineBusyError

    def generate(self, model: str | None, prompts: Sequence[Prompt], samplings: Sequence[Sampling]) -> Generation:
        """Submits one row per (prompt, sampling) pair; refuses them all when there is no room for them all."""
        adapter = self.resolve(model)
        if self._is_ending or not self.is_healthy:
            raise errors.EngineStoppedError
        self.refuse_beyond_room(len(prompts))
        tickets = [Ticket(p, s, adapter, i) for i, (p, s) in enumerate(zip(prompts, samplings, strict=True))]
        generation = Generation(self, tickets)
        for ticket in tickets:
            self._owners[ticket] = generation
            self._loop.command(partial(Batch.add, ticket=ticket))
        return generation

    def withdraw(self, tickets: set[Ticket]) -> None:
        """Cancels rows on behalf of their generation."""
        for ticket in tickets:
            if self._owners.pop(ticket, None) is not None:
                self._loop.command(partial(Batch.cancel, ticket=ticket))

    async def load(self, name: str, path: str) -> None:
        """Reads an adapter without holding up anything else, then serves it under a name that was free."""
        if not name or not path:
            raise errors.AdapterIncompleteError
        if name == self.base_name:
            raise errors.AdapterNamedAsBaseError(name)
        if name in self.adapters or name in self._loading:
            raise errors.AdapterLoadedError(name)
        if len(self.adapters) + len(self._loading) >= self._limits.adapters_max:
            raise errors.AdaptersFullError(self._limits.adapters_max)
        folder, top = Path(path), self._limits.adapter_dir
        # In the words of a folder without an adapter, so that nobody learns by them what is on this machine.
        if top is not None and not folder.resolve().is_relative_to(top.resolve()):
            raise errors.AdapterNotFoundError(name)
        self._loading.add(name)
        try:
            adapter = await asyncio.to_thread(
                load_adapter, name, folder, self._network.layer_shapes, self._limits.adapter_rank_max
            )
        finally:
            self._loading.discard(name)
        self.adapters[name] = adapter
        self.events.adapter_loaded(name, adapter.rank, list(self.adapters))

    def unload(self, name: str) -> None:
        """Takes the name from new requests; rows that run with the adapter keep it until they end."""
        adapter = self.adapters.pop(name, None)
        if adapter is None:
            raise errors.AdapterUnknownError(name)
        self._loop.command(lambda batch: batch.forget_adapter(adapter.serial))
        self.events.adapter_unloaded(name, list(self.adapters))

    def _on_asyncio(self, call: Callable[..., None], *arguments: object) -> None:
        """From the computing thread: one call on the asyncio thread."""
        if self._asyncio is not None and not self._asyncio.is_closed():
            self._asyncio.call_soon_threadsafe(call, *arguments)

    def _died(self) -> None:
        """Ends what was submitted while the loop failed, which no batch knows of, and says that it died."""
        name_of = self._network.name_of
        left = [(t, Update(None, name_of(t.adapter), error=errors.LoopFailedError())) for t in self._owners]
        self._dispatch(left)
        self._on_death()

    def _dispatch(self, updates: Updates) -> None:
        """Gives each update to the generation that waits for it."""
        for ticket, update in updates:
            generation = self._owners.get(ticket)
            if generation is None:
                continue
            if update.is_last:
                del self._owners[ticket]
            generation.push(ticket, update)
