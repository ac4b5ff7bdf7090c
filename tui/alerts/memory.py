"""Alerts about KV memory: riders put off, and a cache that is full."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from .. import money, numbers
from ..numbers import SECOND_NS
from ..snapshot import Alert
from ..verdict import FULL

if TYPE_CHECKING:
    from .watch import Watch

GIB = 1 << 30


def preemption(watch: Watch) -> Iterator[Alert]:
    """Riders were put off for lack of KV blocks, and their rows are computed twice."""
    s = watch.snapshot
    if not s.preemptions or s.wall_ns <= 0:
        return
    rate = f"{numbers.count(s.preemptions * SECOND_NS / s.wall_ns)}/s"
    twice = sum(second.recomputed for second in watch.seconds())
    cause = f"{s.preemptions} riders were put off in {numbers.seconds(s.wall_ns)} ({rate}) for lack of KV blocks"
    if twice:
        cause += f"; {twice:,} tokens were computed a second time{_cost(watch)}"
    if s.waiting:
        cause += f"; {s.waiting} wait" + (f", {s.riding} ride" if s.riding is not None else "")
    yield Alert(
        "preemption",
        "bad",
        "riders are put off: the KV cache is too small for this batch",
        f"{cause}.{_capacity(watch)}",
        "Lower max_num_seqs, or give the cache more: --gpu-memory-utilization, an fp8 KV cache, shorter max_model_len.",
    )


def kv_full(watch: Watch) -> Iterator[Alert]:
    """Requests wait for KV blocks although seats are free."""
    s = watch.snapshot
    used = s.kv_part
    if used is None or used < FULL or not s.waiting or s.preemptions:
        return
    yield Alert(
        "kv",
        "bad",
        f"limited by KV memory: {s.waiting} requests wait for blocks",
        f"{numbers.percent(used)} of the KV blocks are in use{_free_seats(watch)}.{_capacity(watch)}",
        "More seats would not help. Give the cache more memory, use an fp8 KV cache, or cap prompt and output lengths.",
    )


def _cost(watch: Watch) -> str:
    amounts = watch.snapshot.money
    if amounts is None:
        return ""
    wasted = money.amount(amounts.overhead, money.decimals(amounts.total))
    return f", {money.sign(amounts.currency)}{wasted}/h of overhead"


def _free_seats(watch: Watch) -> str:
    s = watch.snapshot
    if not s.seats or s.riding is None:
        return ""
    return f" while {s.seats - s.riding} of {s.seats} seats are free"


def _capacity(watch: Watch) -> str:
    run = watch.fold.run
    if run.kv_blocks is None:
        return ""
    size = "" if run.block_bytes is None else f", {run.kv_blocks * run.block_bytes / GIB:.1f} GiB"
    return f" The cache has {run.kv_blocks:,} blocks{size}."
