"""Events of a stream: found in the bytes, read, and shown to the client as it asked for them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, cast

from ..usage.fields import Json

LONGEST_EVENT = 16 * 2**20
"""A longer event is passed on as it comes, unread."""
_EVENT_END = re.compile(rb"\r\n\r\n|\n\n|\r\r")
_LINE_END = re.compile(rb"\n")
_LINES = re.compile(r"\r\n|\n|\r")
_OBJECT = rb'\{(?:[^{}"\\]++|"[^"{}\\]*+"|\{[^{}]*+\})*+\}'
_LAST = rb"(?=\}\s*$)"
_MEMBERS = {
    name: (
        re.compile(rb',\s*"%b"\s*:\s*' % name.encode()),
        re.compile(rb',"%b":(?:%b|null)%b' % (name.encode(), _OBJECT, _LAST)),
    )
    for name in ("usage", "timings")
}
"""How a member looks anywhere in an object, and at its end."""
_CARRIES = rb'"(?:content|text|reasoning_content|reasoning|refusal)":"[^"]|"tool_calls":\[[^\]]'
carries_output = re.compile(_CARRIES).search
"""Whether a chunk that `is_midway` carries output: text, a piece of reasoning, or part of a tool's call."""
_DECODER = json.JSONDecoder()
DONE = b"[DONE]"


class Splitter:
    """Cuts a stream into whole events: of server-sent events, or of lines of JSON."""

    def __init__(self, *, lines: bool = False) -> None:
        self._end = _LINE_END if lines else _EVENT_END
        self._held = bytearray()
        self._looked = 0

    @property
    def is_idle(self) -> bool:
        """Whether nothing is held."""
        return not self._held

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The events that end in `data`, byte for byte with their ends; what begins after them is held."""
        held = self._held
        held += data
        start, look = 0, max(0, self._looked - 3)
        while found := self._end.search(held, look):
            yield bytes(held[start : found.end()])
            start = look = found.end()
        del held[:start]
        self._looked = len(held)
        if len(held) > LONGEST_EVENT:
            yield self.rest()

    def rest(self) -> bytes:
        """What is held: an event without its end."""
        rest = bytes(self._held)
        self._held.clear()
        self._looked = 0
        return rest


def data_of(event: bytes) -> bytes:
    """The data of an event (WHATWG HTML, 9.2.6), or a line of JSON as it is."""
    if event.startswith(b"data: ") and event.find(b"\n") >= len(event) - 2:
        return event[6:].strip()
    if event.startswith(b"{"):
        return event.strip()
    lines = _LINES.split(event.decode("utf-8", "replace"))
    data = [line[5:].removeprefix(" ") for line in lines if line.startswith("data:")]
    return "\n".join(data).strip().encode()


def parsed(data: bytes) -> Json | None:
    """The JSON object in some data; None: it is none."""
    if not data.startswith(b"{"):
        return None
    try:
        found = json.loads(data.decode())  # from bytes, the encoding would be guessed each time
    except (ValueError, RecursionError):
        return None
    return cast("Json", found) if isinstance(found, dict) else None


def is_midway(event: bytes) -> bool:
    """Whether an event is surely a chunk of choices none of which has ended, told from its bytes: no need to read it.

    A text cannot look like this, because quotes in texts are escaped.
    """
    return (
        event.startswith(b"data: {")
        and event.endswith(b"}\n\n")
        and event.find(b"\n") == len(event) - 2
        and b"\r" not in event
        and b'"choices":[{' in event
        and 0 < event.count(b'"finish_reason"') == event.count(b'"finish_reason":null')
    )


class Curtain:
    """Hides from a client what only the proxy asked for, and nothing else: all other bytes stay.

    `final`, `running` and `timings`: the client itself asked for a last chunk of usage, for running totals on every
    chunk, for llama.cpp's timings on every chunk.
    """

    def __init__(self, *, final: bool, running: bool, timings: bool) -> None:
        self._final, self._running, self._timings = final, running, timings
        self._is_running = False
        hidden = [name for name, wanted in ((b"timings", timings), (b"usage", running)) if not wanted]
        self._hidden = [b'"%b"' % name for name in hidden]
        value = _OBJECT if final else _OBJECT + b"|null"
        self._last = re.compile(rb",(?:%b):(?:%b)%b" % (b"|".join(self._hidden) or b"^", value, _LAST))

    def midway(self, event: bytes) -> bytes | None:
        """An event that `is_midway`, as the client gets it; None: its bytes do not tell, it has to be read."""
        if found := self._last.search(event):
            start, end = found.span()
            event = event[:start] + event[end:]
            self._is_running = True
        for name in self._hidden:
            if name in event:
                return None
        return event

    def shown(self, event: bytes, body: Json) -> bytes:
        """The event as the client gets it; empty: it is not for the client."""
        if "timings" in body and not self._timings and body.get("choices") and not _has_ended(body):
            event = _without("timings", event, body)
            body = {name: value for name, value in body.items() if name != "timings"}
        return self._less_usage(event, body) if "usage" in body and not self._running else event

    def _less_usage(self, event: bytes, body: Json) -> bytes:
        if not body.get("choices"):
            return event if self._final or body["usage"] is None else b""
        self._is_running = self._is_running or (body["usage"] is not None and not _has_ended(body))
        keep = self._final and (body["usage"] is None or not self._is_running)
        return event if keep else _without("usage", event, body)


def _has_ended(body: Json) -> bool:
    choices: Any = body["choices"]
    return any(isinstance(choice, dict) and cast("Json", choice).get("finish_reason") for choice in choices)


def _without(name: str, event: bytes, body: Json) -> bytes:
    """The event less one member, cut out of its bytes; where that is not plain, written anew.

    Where it comes last, as vLLM and llama.cpp write it, the brace that ends it stands before the one that ends the
    object; a text cannot look like its beginning, because quotes in texts are escaped.
    """
    anywhere, at_the_end = _MEMBERS[name]
    if last := at_the_end.search(event):
        return event[: last.start()] + event[last.end() :]
    less = {key: value for key, value in body.items() if key != name}
    for found in reversed(list(anywhere.finditer(event))):
        try:
            text = event[found.end() :].decode()
            _, chars = _DECODER.raw_decode(text)
            cut = event[: found.start()] + text[chars:].encode()
        except ValueError:
            continue
        if parsed(data_of(cut)) == less:
            return cut
    return b"data: " + json.dumps(less, ensure_ascii=False, separators=(",", ":")).encode() + b"\n\n"
