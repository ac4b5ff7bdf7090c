"""The same snapshot without a terminal: as plain text, and as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict
from decimal import Decimal
from textwrap import wrap
from typing import TYPE_CHECKING

from . import lines, meters
from .board import Board
from .budgets import budget_line
from .glyphs import UNICODE, Glyphs
from .line import Line, plain
from .widgets.histogram import one_line

if TYPE_CHECKING:
    from .snapshot import Snapshot

WIDTH = 80


def plain_snapshot(snapshot: Snapshot | None, glyphs: Glyphs = UNICODE, width: int = WIDTH) -> str:
    """The Live page as text of `width` columns, without escapes, ending with a newline."""
    if snapshot is None:
        return "this store holds no run yet\n"
    board = Board(snapshot, width, glyphs)
    told: list[Line] = [
        lines.header(snapshot, width, glyphs),
        *lines.trouble(snapshot, width),
        [],
        *_meters(snapshot),
        one_line(snapshot, width, glyphs),
        *lines.idle(snapshot, width),
        *lines.cost(snapshot, width, glyphs),
        *lines.saving(snapshot, width),
        [],
        board.head(),
        *(board.row(i) for i in range(len(snapshot.tenants))),
        *board.foot(),
        *_budget(snapshot, width, glyphs),
    ]
    return "".join(f"{glyphs.text(plain(line)).rstrip()}\n" for line in told)


def to_json(snapshot: Snapshot | None) -> str:
    """Every figure as one JSON object: integers as they are, exact decimals as text, unknown as null."""
    return json.dumps(None if snapshot is None else asdict(snapshot), default=_decimal, ensure_ascii=False, indent=2)


def _meters(s: Snapshot) -> list[Line]:
    prefill, decode = (plain(meters.split(part, s)) for part in (s.prefill_ns, s.decode_ns))
    return [
        _pair("riding", plain(meters.riding(s)), "step", plain(meters.step(s))),
        _pair("waiting", plain(meters.waiting(s)), "prefill", f"{prefill}, decode {decode}"),
        _pair("KV cache", plain(meters.kv(s)), "TTFT", plain(meters.ttft(s))),
        _pair("preempted", plain(meters.put_off(s)), "per token", plain(meters.itl(s))),
        _pair("tokens/s", plain(lines.tokens(s)), "finished", plain(meters.finished(s))),
    ]


def _budget(snapshot: Snapshot, width: int, glyphs: Glyphs) -> list[Line]:
    """The budget to worry about, in all words."""
    told = budget_line(snapshot, 10 * width, glyphs)
    return [[(line, "")] for line in wrap(plain(told), width, subsequent_indent="  ")] if told else []


def _pair(left: str, told: str, right: str, also: str) -> Line:
    return [(f"{left:<{lines.INDENT}}{told:<33} {right:<{lines.INDENT}}{also}", "")]


def _decimal(value: object) -> str:
    if isinstance(value, Decimal):
        return f"{value:f}"
    raise TypeError(f"{type(value).__name__} has no place in a snapshot")
