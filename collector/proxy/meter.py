"""The meter: what one request took, told to a spool while it is served and when it ends."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

from ...events import FinishReason, Request, Tier
from ..usage.answers import usage_of
from ..usage.ends import finish_of
from ..usage.event import request_event
from ..usage.fields import Json, count, objects, text
from ..usage.tally import Tally
from ..usage.usage import Usage
from .asked import LONGEST_MODEL
from .sse import carries_output, data_of, parsed

TELL_NS = 1_000_000_000
"""How often running totals are told while a request is served."""
_LONGEST_ID = 128
_OUTPUTS = ("content", "text", "reasoning_content", "reasoning", "tool_calls", "refusal")

Put = Callable[[Any], None]


@dataclass(frozen=True)
class Book:
    """Where records go, and what they have in common."""

    put: Put
    engine_id: str
    clock: Callable[[], int]


@dataclass(frozen=True)
class Rider:
    """Who asks, and for what."""

    request_id: str
    tenant_id: str
    tier: Tier
    model: str
    max_tokens: int | None
    has_choices: bool = False
    """Whether there is more than one answer, each with running totals of its own."""


def new_id(named: str | None) -> str:
    """An id of a record: what the client calls its request, made unique, for a retry has the same name."""
    unique = secrets.token_hex(8)
    is_good = named and named.isprintable() and len(named) <= _LONGEST_ID
    return f"{named}-{unique}" if is_good else unique


class Meter:
    """Counts one request. `see` takes the objects of its answer as they come, `end` writes its record, once."""

    def __init__(self, book: Book, rider: Rider) -> None:
        self._book, self._rider = book, rider
        self._arrived_ns = self._told_ns = book.clock()
        self._first_token_ns: int | None = None
        self._tally = Tally()
        self._newest: dict[int, Json] = {}
        self._unread: bytes | None = None
        self._events = 0
        self._model = rider.model
        self._reason: FinishReason | None = None
        self._is_over = False

    @property
    def reason(self) -> FinishReason | None:
        """How the answer says it ended; None: it does not say so far."""
        return self._reason

    @property
    def passes_by(self) -> bool:
        """Whether chunks in the middle need not be read one by one: of one answer, after its first token."""
        return self._first_token_ns is not None and not self._rider.has_choices

    def pass_by(self, event: bytes) -> None:
        """Take note of such a chunk. Running totals are repeated, so only the newest is read, once a second."""
        self._unread = event
        if b'"usage":{' not in event and carries_output(event):
            self._events += 1
        self._tell_if_due()

    def see(self, body: Json, *, streams: bool) -> None:
        """Take note of an answer, or of one event of a stream."""
        if streams:
            self._note_output(body)
            is_midway = _is_midway(body)
            if is_midway or (self._rider.has_choices and objects(body, "choices")):
                self._newest[count(objects(body, "choices")[0], "index") or 0] = body
                self._reason = self._reason if is_midway else finish_of(body) or self._reason
                self._tell_if_due()
                return
        self._read(body)

    def _read(self, body: Json) -> None:
        self._tally.see(body)
        self._reason = finish_of(body) or self._reason
        self._model = (text(body, "model") or self._model)[:LONGEST_MODEL]

    def _settle(self) -> None:
        """Read the newest chunk, if it was not; of several answers, only the last word tells of all."""
        if not self._rider.has_choices:
            for body in self._newest.values():
                self._read(body)
            self._newest.clear()
        if self._unread is not None:
            body = parsed(data_of(self._unread))
            self._unread = None
            if body is not None:
                self._read(body)

    def _counted(self) -> Usage:
        """What nobody summed up: the running totals of each answer, or the events in which tokens came."""
        told = [usage_of(body) for body in self._newest.values()]
        outputs = [usage.output_tokens for usage in told if usage.output_tokens is not None]
        prompts = [usage.prompt_tokens for usage in told if usage.prompt_tokens is not None]
        return Usage(max(prompts, default=None), None, sum(outputs) if outputs else self._events or None)

    def _note_output(self, body: Json) -> None:
        if _has_token(body):
            self._events += 1
            if self._first_token_ns is None:
                self._first_token_ns = self._book.clock()

    def end(self, reason: FinishReason) -> None:
        """The request is over: tell what is untold, and its record."""
        if self._is_over:
            return
        self._is_over = True
        self._settle()
        self._tally.tell("counted", self._counted())
        now_ns = self._book.clock()
        self._tell_usage(self._tally.take(final=True), now_ns)
        self._book.put(request_event(self._record(reason, now_ns)))

    def _tell_if_due(self) -> None:
        now_ns = self._book.clock()
        if now_ns - self._told_ns >= TELL_NS:
            self._told_ns = now_ns
            self._settle()
            self._tell_usage(self._tally.take(), now_ns)

    def _tell_usage(self, more: Usage, now_ns: int) -> None:
        counts = {name: getattr(more, name) or 0 for name in ("prompt_tokens", "cached_tokens", "output_tokens")}
        if any(counts.values()):
            who = {"engine_id": self._book.engine_id, "tenant_id": self._rider.tenant_id, "tier": self._rider.tier}
            self._book.put({"usage": {**who, "at_ns": now_ns, **counts}})

    def _record(self, reason: FinishReason, now_ns: int) -> Request:
        usage, rider = self._tally.usage, self._rider
        first_ns = self._first_token_ns
        if first_ns is None and usage.decode_ns is not None and usage.output_tokens:
            first_ns = max(self._arrived_ns, now_ns - usage.decode_ns)
        scheduled_ns = None
        if usage.queue_ns is not None:
            scheduled_ns = min(self._arrived_ns + usage.queue_ns, now_ns if first_ns is None else first_ns)
        return Request(
            request_id=rider.request_id,
            engine_id=self._book.engine_id,
            run_id="",
            tenant_id=rider.tenant_id,
            tier=rider.tier,
            model=self._model,
            arrived_ns=self._arrived_ns,
            scheduled_ns=scheduled_ns,
            first_token_ns=first_ns,
            finished_ns=now_ns,
            prompt_tokens=usage.prompt_tokens,
            cached_tokens=usage.cached_tokens,
            output_tokens=usage.output_tokens,
            reasoning_tokens=usage.reasoning_tokens,
            max_tokens=rider.max_tokens,
            finish_reason=reason,
            preemptions=None,
            prefix_ids=None,
            gpu_ns=None,
        )


def _is_midway(body: Json) -> bool:
    """Whether an event is a chunk of choices none of which has ended."""
    choices: Any = body.get("choices")
    if type(choices) is not list or not choices:
        return False
    return all(type(choice) is dict and choice.get("finish_reason") is None for choice in cast("list[Any]", choices))


def _has_token(body: Json) -> bool:
    """Whether an event carries output: text, a piece of reasoning, or part of a tool's call."""
    choices = body.get("choices")
    if choices is not None:
        return any(_choice_has_token(choice) for choice in objects(body, "choices"))
    kind = body.get("type")
    if isinstance(kind, str):
        return kind.endswith(".delta") or kind == "content_block_delta"
    return bool(body.get("content") or body.get("response") or body.get("message"))


def _choice_has_token(choice: Json) -> bool:
    delta: Any = choice.get("delta")
    held = cast("Json", delta) if type(delta) is dict else choice
    return any(held.get(name) for name in _OUTPUTS)
