"""The lines of the Live page that are the same in the terminal and in plain text."""

from __future__ import annotations

from textwrap import wrap
from typing import TYPE_CHECKING

from rich.cells import cell_len

from . import money, numbers
from .glyphs import Glyphs
from .hourly import Hourly, hourly
from .line import Line, Role, flow, spread, width_of
from .verdict import verdict

if TYPE_CHECKING:
    from decimal import Decimal

    from .snapshot import Latency, Money, Snapshot, State

INDENT = 10
STATES: dict[State, Role] = {"starting": "warn", "live": "good", "idle": "warn", "ended": "label", "lost": "bad"}


def header(snapshot: Snapshot, width: int, glyphs: Glyphs, paused: bool = False, replay: str = "") -> Line:
    """Who is watched, at what price, how it is doing, and what time it is there."""
    engine = snapshot.engine
    right: Line = [(f"{glyphs.signs[engine.state]} {engine.state}", STATES[engine.state])]
    patience_ns = 3 * numbers.SECOND_NS + (engine.every_ns or 0)
    if engine.behind_ns is not None and engine.behind_ns >= patience_ns:
        right.append((f" {numbers.seconds(engine.behind_ns)} behind", "warn"))
    if replay:
        right = [(glyphs.text(replay), "warn"), ("  paused" if paused else "", "warn")]
    elif paused:
        right = [("paused", "warn")]
    right.append((f"  {numbers.clock(snapshot.now_ns)} UTC", "strong"))
    brand = "farebox  "
    told = _who(snapshot, width - width_of(right) - len(brand) - 2, glyphs)
    return spread([(brand, "brand"), (told, "strong")], right, width)


def trouble(snapshot: Snapshot, width: int) -> list[Line]:
    """What is wrong with a source, in as many lines as it takes."""
    return [[(line, "bad")] for line in wrap(snapshot.trouble, width)] if snapshot.trouble else []


def idle(snapshot: Snapshot, width: int) -> list[Line]:
    """Idle in its three meanings, and the verdict."""
    compute = None if snapshot.compute_used is None else 1 - snapshot.compute_used
    items: list[Line] = [
        _item("no step", numbers.percent(snapshot.no_step), "warn"),
        _item("empty seats", numbers.percent(snapshot.empty_seats), "warn"),
        _item("compute idle", numbers.percent(compute), "warn"),
        _item("bandwidth", numbers.percent(snapshot.bandwidth_used), "good"),
    ]
    return flow("idle", items, width, INDENT) + flow("", [[verdict(snapshot)]], width, INDENT)


def cost(snapshot: Snapshot, width: int, glyphs: Glyphs) -> list[Line]:
    """What an hour like this one costs, and who owns it."""
    shown = hourly(snapshot)
    if snapshot.money is None or shown is None:
        reason = glyphs.name(snapshot.money_reason or "")
        hint = ": the table shows GPU-ms instead" if snapshot.unit == "GPU-ms" else ""
        return flow("cost", [[(reason + hint, "label")]], width, INDENT)
    sign = glyphs.text(money.sign(snapshot.money.currency))
    items: list[Line] = [[(f"{sign}{money.text(shown.total, shown.places)}/h", "money")]]
    for i, (name, amount) in enumerate(_parts(snapshot.money, shown)):
        items.append([("+ " if i else "= ", "label"), (f"{name} ", "label"), (amount, "strong")])
    return flow("cost", items, width, INDENT, gap=1)


def saving(snapshot: Snapshot, width: int) -> list[Line]:
    """What 1000 tokens cost now, what they would cost one request at a time, and how much the batch saves."""
    now, alone = snapshot.per_1k, snapshot.per_1k_alone
    items: list[Line] = []
    if now is not None:
        items.append(
            [(_per_1k(now, snapshot.unit), "money"), (f" {money.unit_per_1k(snapshot.unit)}/1k tokens", "label")]
        )
    saved = snapshot.saving
    if saved is None:
        why = snapshot.alone_reason or "no step to compare"
        return flow("batching", [*items, [(f"riding alone n/a: {why}", "label")]], width, INDENT)
    if alone is not None:
        items.append([("alone ", "label"), (_per_1k(alone, snapshot.unit), "strong")])
    told: Line = [("saves ", ""), (numbers.percent(saved), "good")]
    if saved < 0:
        told = [("costs ", ""), (numbers.percent(-saved), "bad"), (" more", "")]
    return flow("batching", [*items, [*told, (" (step model)", "label")]], width, INDENT)


def latency(found: Latency | None, reason: str | None = None) -> Line:
    """Two percentiles in milliseconds; `>` before one beyond the last bound of a histogram."""
    if found is None:
        return [("n/a", "label"), (f" {reason or 'none finished'}", "faint")]
    return [
        ("p50 ", "label"),
        (">" * found.p50_is_more + numbers.millis(found.p50_ns), "strong"),
        ("  p99 ", "label"),
        (">" * found.p99_is_more + numbers.millis(found.p99_ns), "strong"),
        (" ms", "label"),
    ]


def tokens(snapshot: Snapshot) -> Line:
    """Tokens per second, in and out."""
    s = snapshot
    is_told = s.prompt_tokens and s.known("cached_tokens", s.cached_tokens) is not None
    cached = s.cached_tokens / s.prompt_tokens if is_told else None
    return [
        ("in ", "label"),
        (numbers.per_second(s.known("prompt_tokens", s.prompt_tokens), s.wall_ns), "prefill"),
        ("  cached ", "label"),
        (numbers.percent(cached), "strong"),
        ("  out ", "label"),
        (numbers.per_second(s.known("output_tokens", s.output_tokens), s.wall_ns), "decode"),
    ]


def _who(snapshot: Snapshot, width: int, glyphs: Glyphs) -> str:
    """Engine, model, GPUs, mode and price. Where it is narrow mode and engine go first, and then the model is cut."""
    engine = snapshot.engine
    gpus = glyphs.text(f"{engine.gpus}×") + glyphs.name(_gpu_label(engine.gpu_type))
    more = f" +{engine.others}" if engine.others else ""
    parts = [glyphs.name(engine.engine_id) + more, glyphs.name(engine.model), gpus, glyphs.name(engine.mode)]
    parts.append(_price(snapshot, glyphs))
    dot = glyphs.text(" · ")
    for drop in (3, 0):
        if cell_len(dot.join(parts)) > width:
            del parts[drop]
    room = width - cell_len(dot.join(parts)) + cell_len(parts[-3])
    parts[-3] = glyphs.fit(parts[-3], max(room, 4)) if len(parts) == 3 else parts[-3]
    return glyphs.fit(dot.join(parts), width)


def _price(snapshot: Snapshot, glyphs: Glyphs) -> str:
    shown = hourly(snapshot)
    if shown is None:
        return "no rate" if snapshot.unit == "GPU-ms" else "no price"
    return f"{glyphs.text(money.sign(snapshot.unit))}{money.text(shown.total, shown.places)}/h"


def _parts(amounts: Money, shown: Hourly) -> list[tuple[str, str]]:
    """Who owns the hour, in the amounts of the table. Empty parts but idle stay away."""
    parts = (
        ("riders", amounts.riders, sum(shown.tenants)),
        ("idle", amounts.idle, shown.idle),
        ("overhead", amounts.overhead, shown.overhead),
        ("underfill", amounts.underfill, shown.underfill),
        ("unobserved", amounts.unobserved, shown.unobserved),
    )
    return [
        (name, money.text(unit, shown.places)) for name, value, unit in parts if value or name in ("riders", "idle")
    ]


def _item(name: str, value: str, role: Role) -> Line:
    return [(f"{name} ", "label"), (value, "label" if value == "–" else role)]


def _per_1k(value: Decimal, unit: str) -> str:
    return money.figure(value, milli=unit != "GPU-ms")


def _gpu_label(gpu_type: str) -> str:
    """`h100_sxm` as people write it; any other spelling stays as it came."""
    canonical = gpu_type == gpu_type.lower() and "_" in gpu_type
    return gpu_type.upper().replace("_", " ") if canonical else gpu_type
