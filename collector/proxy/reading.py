"""Reading an answer in passing: what it tells goes to the meter, what the client gets stays as it was."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Callable

from ...events import FinishReason
from .answer import Answer, Take
from .asked import Asked
from .headers import first
from .meter import Meter
from .sse import DONE, Curtain, Splitter, data_of, is_midway, parsed

LONGEST_ANSWER = 64 * 2**20
"""A longer one in one piece is passed on unread."""
_LONG = 2**18
_TAIL = 2**13
_USAGE = re.compile(r'"usage"\s*:\s*')
_AUTO_GZIP = 47

Decode = Callable[[bytes], bytes]


class Reading:
    """Takes the pieces of one answer, and gives what the client is to get of each to `show`."""

    def __init__(self, answer: Answer, asked: Asked, meter: Meter, show: Take) -> None:
        kind = (first(answer.headers, b"content-type") or "").partition(";")[0].strip().lower()
        encoding = (first(answer.headers, b"content-encoding") or "identity").strip().lower()
        self._meter, self._show = meter, show
        self._decode = _decoder(encoding)
        is_good = answer.status < 400
        self._splitter = _splitter(kind) if is_good else None
        self._whole = bytearray() if is_good and self._splitter is None else None
        self._is_done = self._splitter is None
        hides = self._splitter is not None and asked.streams and encoding == "identity"
        wants = {"final": asked.wants_final, "running": asked.wants_running, "timings": asked.wants_timings}
        self._curtain = Curtain(**wants) if hides else None

    @property
    def edits(self) -> bool:
        """Whether the client may get less than what comes."""
        return self._curtain is not None

    @property
    def reason(self) -> FinishReason:
        """How the answer ended, now that all of it has come; a stream that never said so was cut."""
        return self._meter.reason or ("stop" if self._is_done else "error")

    def feed(self, piece: bytes) -> None:
        """A piece has come."""
        if self._curtain is None:
            self._show(piece)
            self._read(piece)
            return
        if self._splitter is not None and self._splitter.is_idle and (shown := self._unread(piece)) is not None:
            self._show(shown)  # the rule: one read brings one chunk
        else:
            self._show(b"".join(self._read(piece)))

    def finish(self) -> None:
        """The answer has come to its end."""
        if self._whole is not None:
            self._read_whole(bytes(self._whole))
        self.rest()

    def rest(self) -> None:
        """What of an event without an end has come is read and shown as it is."""
        rest = b"" if self._splitter is None else self._splitter.rest()
        shown = self._event(rest) if rest else b""
        if self._curtain is not None:
            self._show(shown)

    def _read(self, piece: bytes) -> list[bytes]:
        """Read what ends in a piece; returns its events as the client is to get them."""
        if self._splitter is None:
            self._keep(piece)
            return []
        return [self._event(event) for event in self._splitter.feed(self._decode(piece))]

    def _event(self, event: bytes) -> bytes:
        shown = self._unread(event)
        if shown is not None:
            return shown
        data = data_of(event)
        body = parsed(data)
        if body is None:
            self._is_done = self._is_done or data == DONE
            return event
        self._meter.see(body, streams=True)
        return event if self._curtain is None else self._curtain.shown(event, body)

    def _unread(self, event: bytes) -> bytes | None:
        """A chunk as the client is to get it, where its bytes tell enough; None: it has to be read."""
        if not self._meter.passes_by or not is_midway(event):
            return None
        shown = event if self._curtain is None else self._curtain.midway(event)
        if shown is not None:
            self._meter.pass_by(event)
        return shown

    def _keep(self, piece: bytes) -> None:
        if self._whole is None:
            return
        self._whole += self._decode(piece)
        if len(self._whole) > LONGEST_ANSWER:
            self._whole = None

    def _read_whole(self, whole: bytes) -> None:
        body = _tail_usage(whole) if len(whole) > _LONG else None
        body = body or parsed(whole.strip())
        if body is not None:
            self._meter.see(body, streams=False)


def _splitter(kind: str) -> Splitter | None:
    if kind == "text/event-stream":
        return Splitter()
    return Splitter(lines=True) if kind in ("application/x-ndjson", "application/jsonl") else None


def _tail_usage(whole: bytes) -> dict[str, object] | None:
    """The usage at the end of a long answer (embeddings), which would take long to parse."""
    tail = whole[-_TAIL:].decode("utf-8", "replace")
    for found in reversed(list(_USAGE.finditer(tail))):
        try:
            usage, _ = json.JSONDecoder().raw_decode(tail, found.end())
        except ValueError:
            return None
        return {"usage": usage} if isinstance(usage, dict) else None
    return None


def _decoder(encoding: str) -> Decode:
    """How a copy is read of what came compressed although it was not asked for; what cannot be read is nothing."""
    if encoding == "identity":
        return lambda data: data
    if encoding not in ("gzip", "x-gzip", "deflate"):
        return lambda _: b""
    inflate = zlib.decompressobj(_AUTO_GZIP)

    def decode(data: bytes) -> bytes:
        try:
            return inflate.decompress(data)
        except zlib.error:
            return b""

    return decode
