"""The rows that are being answered together, and one step of computing for all of them.

Rows join and leave between steps. One thread uses it; it never waits for anything.
"""

from collections import deque
from collections.abc import Hashable
from dataclasses import dataclass

import torch

from backtalk_worker.engine.domain.plan import Budget, Need, plan_step
from backtalk_worker.engine.domain.prefix import PrefixMemory, common_length
from backtalk_worker.engine.domain.request import LogprobsMode, PositionScores, Prompt, Sampling, Token
from backtalk_worker.engine.domain.row import Row
from backtalk_worker.engine.domain.sampling import draw, score_prompt
from backtalk_worker.engine.domain.text import TokenBytes
from backtalk_worker.engine.errors import EngineError, LogitsNotFiniteError
from backtalk_worker.engine.events import EngineEvents
from backtalk_worker.engine.outputs.adapters import Adapter
from backtalk_worker.engine.outputs.network import RaggedNetwork, RowInput, RowOutput
from backtalk_worker.engine.outputs.ragged import GROWTH_TOKENS, RowCache

REUSE_TOKENS_MIN = 16
"""Fewer shared ids than this are computed again: finding and copying would gain nothing."""


@dataclass(frozen=True, slots=True, eq=False)
class Ticket:
    """One row that a caller asked for."""

    prompt: Prompt
    sampling: Sampling
    adapter: Adapter | None
    index: int = 0
    """Which of the caller's rows this is."""

    @property
    def serial(self) -> int:
        """The adapter's; 0 = the base."""
        return self.adapter.serial if self.adapter else 0

    @property
    def namespace(self) -> Hashable:
        """Keys and values are shared only within one adapter and one salt."""
        return (self.serial, self.prompt.salt)


@dataclass(frozen=True, slots=True)
class Update:
    """What one step means for one row."""

    token: Token | None
    model: str
    """The name of the weights that computed the token, or that were about to compute the next."""
    prompt_scores: list[PositionScores | None] | None = None
    """With the first token, where the prompt was to be scored."""
    error: EngineError | None = None
    aborted: bool = False
    """The engine ended the row early, on purpose."""
    held_text: str = ""
    """Of a row that the engine ends: what was held back, since it might have begun a stop text."""

    @property
    def text(self) -> str:
        """What it adds to the answer's text."""
        return self.held_text if self.token is None else self.token.text

    @property
    def is_last(self) -> bool:
        return (
            self.aborted or self.error is not None or (self.token is not None and self.token.finish_reason is not None)
        )


Updates = list[tuple[Ticket, Update]]


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """Bounds of one batch."""

    rows_max: int
    length_max: int
    """Prompt and answer of one row, in tokens."""
    kv_tokens_max: int
    """Positions with keys and values, of rows and remembered prefixes together."""
    prefix_tokens_max: int
    budget: Budget
    logprobs_mode: LogprobsMode


@dataclass(slots=True, eq=False)
class _Live:
    """A row with its keys and values."""

    ticket: Ticket
    row: Row
    cache: RowCache
    looked_up: bool = False
    counted: bool = False
    """Whether its prompt is in the metrics; a row that was sent back begins again, and is none that came in."""


class Batch:
    """Continuous batching over one network."""

    def __init__(self, network: RaggedNetwork, tokens: TokenBytes, limits: BatchLimits, events: EngineEvents) -> None:
        self._network = network
        self._tokens = tokens
        self._limits = limits
        self._events = events
        self._waiting: deque[_Live] = deque()
        self._live: list[_Live] = []
        self._prefixes: PrefixMemory[RowCache] = PrefixMemory(limits.prefix_tokens_max)
        self._unloaded: set[int] = set()
        """Serials of adapters that take no new rows, while rows run with them."""

    @property
    def running(self) -> int:
        return len(self._live)

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    @property
    def kv_tokens(self) -> int:
        """Positions held by rows and remembered prefixes."""
        return sum(len(live.row.ids) for live in self._live) + self._prefixes.tokens

    def add(self, ticket: Ticket) -> None:
        """Puts a row at the end of the queue; the caller keeps its bound."""
        row = Row.start(ticket.prompt, ticket.sampling, self._limits.length_max, self._tokens)
        self._waiting.append(_Live(ticket, row, self._network.new_cache(GROWTH_TOKENS)))

    def cancel(self, ticket: Ticket) -> None:
        """Takes a row out at once; one that has ended already is no error."""
        self._waiting = deque(live for live in self._waiting if live.ticket is not ticket)
        for live in [live for live in self._live if live.ticket is ticket]:
            self._retire(live)
            self._events.finished("abort")

    def end_all(self, error: EngineError | None) -> Updates:
        """Empties the batch, with a last update for each row: an error, or None where they are aborted on purpose."""
        ended = [*self._live, *self._waiting]
        self._live.clear()
        self._waiting.clear()
        name_of = self._network.name_of
        return [
            (t, Update(None, name_of(t.adapter), error=error, aborted=error is None, held_text=row.stop.flush()))
            for t, row in ((live.ticket, live.row) for live in ended)
        ]

    def forget_adapter(self, serial: int) -> None:
        """Frees what is remembered for an adapter that takes no new rows; of those that run, nothing will be."""
        self._prefixes.forget(lambda namespace: isinstance(namespace, tuple) and namespace[0] == serial)
        self._unloaded = {*self._unloaded, serial} & {live.ticket.serial for live in (*self._live, *self._waiting)}

    def step(self) -> Updates:
        """Computes one step: every answering row's next token, and a bounded part of the waiting prompts."""
        self._admit()
        counts = self._plan()
        self._make_room()
        chosen = [(live, n) for live, n in zip(self._live, counts, strict=False) if n]
        # Rows of one adapter follow each other, so that each adapter is applied once per layer.
        chosen.sort(key=lambda pair: pair[0].ticket.serial)
        return self._compute(chosen)

    def _admit(self) -> None:
        """Moves waiting rows in, while there is room and memory for their ids."""
        while self._waiting and len(self._live) < self._limits.rows_max:
            held = sum(len(live.row.ids) for live in self._live)
            if self._live and held + len(self._waiting[0].row.ids) + 1 > self._limits.kv_tokens_max:
                return
            self._live.append(self._waiting.popleft())

    def _plan(self) -> list[int]:
        """Tokens to compute for each live row; rows that can soon copy a neighbour's beginning wait for it."""
        needs = []
        for index, live in enumerate(self._live):
            row = live.row
            waits = not live.looked_up and not self._look_up(live, self._live[:index])
            needs.append(Need(0 if waits else len(row.ids) - row.computed, row.is_prefilling))
        return plan_step(needs, self._limits.budget)

    def _look_up(self, live: _Live, earlier: list[_Live]) -> bool:
        """Copies the longest known beginning of a row; False = a longer one is being computed, and worth a wait."""
        row = live.row
        # The score of an id comes from the position before it, which therefore has to be computed.
        usable = row.ids[:-1]
        if row.scores_prompt:
            usable = usable[: max(0, row.sampling.prompt_logprobs_start - 1)]
        found = self._prefixes.best(live.ticket.namespace, usable)
        length, source = found if found is not None else (0, None)
        for other in earlier:
            if other.ticket.namespace != live.ticket.namespace:
                continue
            shared = common_length(other.row.ids, usable)
            ready = min(shared, other.row.computed)
            if ready > length:
                length, source = ready, other.cache
            if shared - max(ready, length) >= REUSE_TOKENS_MIN and other.looked_up:
                return False
        live.looked_up = True
        if source is not None and length >= REUSE_TOKENS_MIN:
            live.cache.copy_from(source, length)
            row.computed = length
        if not live.counted:
            live.counted = True
            self._events.prefix_looked_up(len(row.ids), row.computed)
        return True

    def _make_room(self) -> None:
        """Keeps the memory bound: remembered prefixes go first, then the youngest row goes back to the queue."""
        held = sum(len(live.row.ids) + 1 for live in self._live)
        while held > self._limits.kv_tokens_max and len(self._live) > 1:
            youngest = self._live.pop()
            held -= len(youngest.row.ids) + 1
            youngest.row.computed = 0
            youngest.looked_up = False
            youngest.cache = self._network.new_cache(GROWTH_TOKENS)
            self._waiting.appendleft(youngest)
            self._events.preempted()
        self._prefixes.shrink(max(0, self._limits.kv_tokens_max - held))

    def _compute(self, chosen: list[tuple[_Live, int]]) -> Updates:
        """One forward pass, then the prompt's scores and the next tokens of the rows that are complete."""
        if not chosen:
            return []
        outputs = self._network.forward([self._input(live, count) for live, count in chosen])
        ready: list[tuple[_Live, RowOutput]] = []
        for (live, count), output in zip(chosen, outputs, strict=True):
            row = live.row
            position = row.computed
            row.computed += count
            if row.scores_prompt and position < row.prompt_length:
                following = row.ids[position + 1 : min(row.computed + 1, row.prompt_length)]
                logits = output.logits[: len(following)]
                row.score(position, score_prompt(logits, following, row.sampling.prompt_logprobs or 0))
            if row.computed == len(row.ids):
                ready.append((live, output))
        return self._draw(ready) if ready else []

    @staticmethod
    def _input(live: _Live, count: int) -> RowInput:
        """A row's part of the forward pass; logits only where something is read from them."""
        row = live.row
        if row.scores_prompt and row.computed < row.prompt_length:
            logits_from = 0
        else:
            logits_from = count - 1 if row.computed + count == len(row.ids) else count
        ids = row.ids[row.computed : row.computed + count]
        return RowInput(ids, row.computed, live.cache, live.ticket.adapter, logits_from)

    def _draw(self, ready: list[tuple[_Live, RowOutput]]) -> Updates:
        """Draws the next token of each complete row; rows that end leave, and their keys are remembered.

        A row whose numbers are not finite leaves with an error, and its keys with it.
        """
        requests = [live.row.request_draw() for live, _ in ready]
        with torch.inference_mode():
            drawn = draw(torch.stack([output.logits[-1] for _, output in ready]), requests, self._limits.logprobs_mode)
        updates: Updates = []
        for (live, output), picked in zip(ready, drawn, strict=True):
            prompt_scores = live.row.prompt_scores if live.row.answer_length == 0 else None
            if picked is None or (prompt_scores and not live.row.is_scored_soundly):
                self._live.remove(live)
                self._events.finished("error")
                updates.append((live.ticket, Update(None, output.model, error=LogitsNotFiniteError(output.model))))
                continue
            token = live.row.accept(picked)
            updates.append((live.ticket, Update(token, output.model, prompt_scores)))
            if token.finish_reason is not None:
                self._retire(live)
                self._events.finished(token.finish_reason)
        return updates

    def _retire(self, live: _Live) -> None:
        """Takes a row out and remembers what it computed, if there may be rows that begin like it."""
        self._live.remove(live)
        if live.row.computed >= REUSE_TOKENS_MIN and live.ticket.serial not in self._unloaded:
            self._prefixes.put(live.ticket.namespace, live.row.ids[: live.row.computed], live.cache)
