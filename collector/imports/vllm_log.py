"""vLLM's log with `--enable-log-requests --enable-log-outputs`: a line when a request comes, and when it is answered.

Lines as `RequestLogger` (vllm/entrypoints/logger.py) writes them since 0.8. Prompt lengths are there only at DEBUG
level (or before 0.11), and both lengths only without `--max-log-len`. Log lines have no year: the newest is taken that
is not later than the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from ...errors import InputError
from ..usage.ends import finish_of
from ..usage.usage import Usage
from .files import text_lines
from .found import Beginning, Context, Format, Line, RowError
from .values import instant, required

_RECEIVED = re.compile(r"Received request (?P<id>[^\s:]+): ")
_DETAILS = re.compile(r"Request (?P<id>[^\s:]+) details: ")
_ANSWERED = re.compile(
    r"Generated response (?P<id>[^\s:]+)(?P<stream> \(streaming (?:delta|complete)\))?: .*"
    r"output_token_ids: (?P<ids>\[[^\]]*\]|None), finish_reason: (?P<reason>\w+)\s*$"
)
_AT = re.compile(r"\b(?:INFO|DEBUG) (\d\d-\d\d \d\d:\d\d:\d\d)(?:\.\d+)? ")
_PROMPT_IDS = re.compile(r"prompt_token_ids: (\[[^\]]*\])")
_MAX_TOKENS = re.compile(r"\bmax_tokens=(\d+)")
_LORA = re.compile(r"lora_name='([^']+)'")
_TENANT = re.compile(r"(?:chatcmpl|cmpl)-t\.([^.]+)\.")
_LOOKED_AT = 2000
_FRESH_NS = 86_400 * 10**9


class _Received(NamedTuple):
    """What is known of a request before its answer."""

    number: int
    text: str
    at_ns: int
    prompt_tokens: int | None
    max_tokens: int | None
    adapter: str


def looks(begins: Beginning) -> bool:
    """Whether the first lines have a request of vLLM's log."""
    try:
        lines = islice(text_lines(begins.path), _LOOKED_AT)
        return any(_RECEIVED.search(line) and _AT.search(line) for _, line in lines)
    except InputError:
        return False


def read(path: Path, context: Context) -> Iterator[Line]:
    """The requests of a log, each when it is answered; those without an answer in the end."""
    waiting: dict[str, _Received] = {}
    for number, text in text_lines(path):
        if answered := _ANSWERED.search(text):
            if "delta" not in (answered["stream"] or ""):
                yield _line(number, text, answered, waiting.pop(answered["id"], None), context)
        elif received := _RECEIVED.search(text) or _DETAILS.search(text):
            _note(waiting, received["id"], number, text, context)
    for known in waiting.values():
        why = "no answer is logged: it was aborted, or vLLM runs without --enable-log-outputs"
        yield Line(known.number, known.text, RowError(why))


def _note(waiting: dict[str, _Received], request_id: str, number: int, text: str, context: Context) -> None:
    at_ns = _at(text, context)
    if at_ns is None:
        return
    before = waiting.get(request_id)
    ids, limit, lora = _PROMPT_IDS.search(text), _MAX_TOKENS.search(text), _LORA.search(text)
    waiting[request_id] = _Received(
        number,
        text[:_LOOKED_AT],
        before.at_ns if before else at_ns,
        _length(ids[1]) if ids else before.prompt_tokens if before else None,
        int(limit[1]) if limit else before.max_tokens if before else None,
        lora[1] if lora else before.adapter if before else "",
    )


def _line(number: int, text: str, answered: re.Match[str], known: _Received | None, context: Context) -> Line:
    request_id = answered["id"]
    named = _TENANT.match(request_id)
    try:
        finished_ns = required(_at(text, context), "time")
        request = context.request(
            request_id,
            Usage(known.prompt_tokens if known else None, None, _length(answered["ids"])),
            tenant_id=context.tenant_of(named[1] if named else None),
            model=known.adapter if known else "",
            arrived_ns=known.at_ns if known else None,
            finished_ns=finished_ns,
            finish_reason=finish_of({"choices": [{"finish_reason": answered["reason"]}]}) or "stop",
            max_tokens=known.max_tokens if known else None,
        )
    except RowError as error:
        return Line(number, text[:_LOOKED_AT], error)
    return Line(number, "", request)


def _length(ids: str) -> int | None:
    """How many ids a list in the log has; None: they are not logged."""
    inside = ids.strip("[]").strip()
    return None if ids == "None" else inside.count(",") + 1 if inside else 0


def _at(text: str, context: Context) -> int | None:
    """The instant of a log line, in the newest year that is not later than the file."""
    found = _AT.search(text)
    if found is None:
        return None
    year = datetime.fromtimestamp(context.at_ns / 10**9, UTC).year
    for guess in (year + 1, year, year - 1):
        try:
            at_ns = instant({"time": f"{guess}-{found[1]}"}, "time", context.tz)
        except RowError:
            continue  # the 29th of February
        if at_ns is not None and at_ns <= context.at_ns + _FRESH_NS:
            return at_ns
    return None


FORMAT = Format("vllm", looks, read)
