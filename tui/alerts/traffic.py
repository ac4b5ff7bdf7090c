"""Alerts about traffic: stalls, batches kept small, a batch of one, idle time, no free seat."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import groupby
from typing import TYPE_CHECKING

from .. import numbers
from ..numbers import SECOND_NS, share
from ..snapshot import Alert

if TYPE_CHECKING:
    from ..boarding import Ride
    from .watch import Watch

STALL_NS = SECOND_NS
IDLE = 0.5
ALONE = 1.5
ROOMY = 0.8
"""Below this part of the KV cache there is room for more riders."""
LONG_ENOUGH_S = 20


def prefill_stall(watch: Watch) -> Iterator[Alert]:
    """Prompts kept everybody on board from getting a token."""
    stretches = [list(rides) for starved, rides in groupby(watch.fold.boarding.rides, key=_starves) if starved]
    nothing: list[Ride] = []
    worst = max(stretches, key=_length_ns, default=nothing)
    if _length_ns(worst) < STALL_NS:
        return
    tenant, rows = _longest_prompt(worst)
    rows_told = f"{tenant}'s prompt of {rows:,} tokens" if tenant else "a long prompt"
    yield Alert(
        "prefill",
        "bad",
        f"a long prompt starves the others: {_length_ns(worst) / SECOND_NS:.1f} s without a token",
        f"{len(worst)} steps in a row computed {rows_told} and nobody's next token. Those steps are on its bill.",
        "Enable chunked prefill and lower max_num_batched_tokens, or send long prompts to an engine of their own.",
    )


def held(watch: Watch) -> Iterator[Alert]:
    """A tenant's cap (fast mode) kept the batch small while requests waited."""
    holders: Counter[str] = Counter()
    seats: Counter[str] = Counter()
    waited: Counter[str] = Counter()
    for second in watch.seconds():
        for who, hold in second.held.items():
            holders[who] += hold.ns
            seats[who] += hold.seat_ns
            waited[who] = max(waited[who], hold.waiting)
    for who, ns in holders.most_common():
        if ns < SECOND_NS:
            continue
        mean = seats[who] / ns
        by = "the operator's cap" if who == "operator" else f"{who} in fast mode"
        alone = "alone" if mean < ALONE else f"with {mean:.0f} riders"
        yield Alert(
            f"held:{who}",
            "warn",
            f"{by} kept the batch at {mean:.1f} riders for {_time(ns)} while up to {waited[who]} waited",
            f"While it rode {alone} nobody else was let on. The emptiness it causes is on "
            f"{'the line underfill' if who == 'operator' else 'its bill'}.",
            "Route it to the standard tier, or raise its cap on co-riders.",
        )


def seats_taken(watch: Watch) -> Iterator[Alert]:
    """Every seat is taken and requests wait."""
    s = watch.snapshot
    if not s.waiting or s.riding is None or not s.seats or s.riding < s.seats:
        return
    roomy = s.kv_part is not None and s.kv_part < ROOMY
    yield Alert(
        "seats",
        "warn",
        f"every seat is taken and {s.waiting} wait",
        f"{s.riding} of {s.seats} seats are in use"
        + ("." if s.kv_part is None else f", and {numbers.percent(s.kv_part)} of the KV cache."),
        "Raise max_num_seqs: there is KV memory left."
        if roomy
        else "Add a replica, or move batch work to a quiet hour.",
    )


def batch_of_one(watch: Watch) -> Iterator[Alert]:
    """The engine is busy with hardly anybody on board."""
    s = watch.snapshot
    mean = share(s.seat_ns, s.busy_ns)
    busy = share(s.busy_ns, s.wall_ns)
    if mean is None or busy is None or mean >= ALONE or busy < IDLE or s.waiting or watch.wall_s < LONG_ENOUGH_S:
        return
    seats = f" in {s.seats} seats" if s.seats else ""
    tenants = ", ".join(dict.fromkeys(row.tenant_id for row in s.tenants[:3]))
    yield Alert(
        "alone",
        "warn",
        "batch of 1: not enough parallel requests",
        f"{mean:.1f} riders on average{seats}, while steps ran {numbers.percent(busy)} of the time "
        f"({tenants}). A step costs nearly the same with many on board.",
        "Send more requests at once, or let several workloads share this engine: another GPU would not help.",
    )


def idle(watch: Watch) -> Iterator[Alert]:
    """The engine was up and mostly ran nothing."""
    s = watch.snapshot
    part = s.no_step
    if part is None or part < IDLE or watch.wall_s < LONG_ENOUGH_S or s.engine.state not in ("live", "idle"):
        return
    yield Alert(
        "idle",
        "warn",
        f"idle {numbers.percent(part)} of the last {numbers.seconds(s.wall_ns)}",
        "No step ran in that time: the engine was up, paid for, and had no requests.",
        "Move batch work here, put two models' traffic on fewer replicas, or stop this one in quiet hours.",
    )


def _starves(ride: Ride) -> bool:
    step = ride.step
    return step.prefill_tokens > 0 and step.decode_seqs == 0 and step.running > step.prefill_seqs


def _length_ns(rides: list[Ride]) -> int:
    return sum(ride.step.duration_ns for ride in rides)


def _longest_prompt(rides: list[Ride]) -> tuple[str, int]:
    """The tenant that computed the most prompt rows in some steps, and how many."""
    rows: Counter[str] = Counter()
    for ride in rides:
        for cell in ride.cells:
            rows[cell.tenant_id] += cell.rows if cell.phase == "prefill" else 0
    found = rows.most_common(1)
    return found[0] if found else ("", 0)


def _time(ns: int) -> str:
    return f"{ns // SECOND_NS} s"
