"""Lists of settings: a table for people, JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import click

from .output import show

LIST_WIDTH = 200
"""Columns of a list in a pipe: wide, so that a name is rarely folded."""


def print_records(records: Sequence[Any]) -> None:
    """Print records as JSON, with the names, units and nulls that they have in the store."""
    click.echo(json.dumps([record._asdict() for record in records], indent=2, ensure_ascii=False))


def print_table(head: Sequence[str], rows: Sequence[Sequence[str]], nothing: str) -> None:
    """Print rows under their head; `nothing` says what to do when there are none."""
    from rich.table import Table
    from rich.text import Text

    if not rows:
        click.echo(nothing)
        return
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in head:
        table.add_column(name, overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    show(lambda console: console.print(table), width=LIST_WIDTH)


def when(at_ns: int | None, open_end: str = "") -> str:
    """A start or an end as `2026-01-01 00:00Z`; 0 is `the beginning`, an open end `open_end`."""
    from .clock import utc_text

    if at_ns is None:
        return open_end
    return "the beginning" if at_ns == 0 else utc_text(at_ns).replace(":00Z", "Z")


def plain(number: str) -> str:
    """Decimal text as it is; a fraction to six digits, marked as rounded."""
    from fractions import Fraction

    if "/" not in number:
        return number
    micro = round(Fraction(number) * 10**6)
    return f"≈{micro // 10**6}.{micro % 10**6:06}"
