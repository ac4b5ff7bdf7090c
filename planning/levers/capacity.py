"""Levers of capacity: fewer replicas, hours of day, idle nights."""

from __future__ import annotations

from collections.abc import Iterator

from ..traffic import groups_of
from ..words import percent_text
from .candidate import Candidate, Look
from .evidence import HOUR_NS, busy_hours, by_hour

DAY_NS = 24 * HOUR_NS
QUIET = 0.25
"""An hour with less than this part of the busiest one's requests is in the valley."""
EPOCH_WEEKDAY = 3
"""1970 began on a Thursday, counted from Monday as 0."""
NIGHT_H = 4
"""A shorter night is not worth a start."""


def replicas(look: Look) -> Iterator[Candidate]:
    """Fewer replicas, all day or in the valley."""
    usage = look.before.usage
    for name, runs in groups_of(look.recorded.runs).items():
        count = len({run.run.engine_id for run in runs})
        if count < 2:
            continue
        evidence = f"{name} has {count} replicas; no step ran in {percent_text(usage.no_step)} of their time"
        for fewer in sorted({1, count // 2, count - 1}):
            title = f"{name}: {fewer} replicas instead of {count}"
            yield Candidate("replicas", title, evidence, ("--set", f"{name}:replicas={fewer}"))
        hours = window(look, QUIET)
        if hours is not None:
            least = max(1, count // 2)
            valley = f"outside {hours} UTC no hour has more than {percent_text(QUIET)} of the busiest one's requests"
            told = f"{evidence}; {valley}"
            arguments = (
                "--set",
                f"{name}:replicas={count}",
                "--set",
                f"{name}:min_replicas={least}",
                "--set",
                f"{name}:hours={hours}",
            )
            yield Candidate("replicas by hour", f"{name}: {least} replicas outside {hours} UTC", told, arguments)


def nights(look: Look) -> Iterator[Candidate]:
    """Hours in which nobody asks anything, on no day."""
    hours = window(look, 0.0)
    if hours is None:
        return
    for name, runs in groups_of(look.recorded.runs).items():
        count = len({run.run.engine_id for run in runs})
        evidence = f"nobody asked anything outside {hours} UTC on any recorded day"
        arguments = ("--set", f"{name}:replicas={count}", "--set", f"{name}:hours={hours}")
        yield Candidate("idle nights", f"{name}: shut down outside {hours} UTC", evidence, arguments)


def window(look: Look, least: float) -> str | None:
    """The busy hours of a recording of a day or more, as a fleet file has them."""
    if look.recorded.to_ns - look.recorded.from_ns < DAY_NS:
        return None
    found = busy_hours(by_hour(look.recorded), least)
    if found is None or (found[0] - found[1]) % 24 < NIGHT_H:
        return None
    return f"{found[0]:02}:00-{found[1] or 24:02}:00"


def weekdays(look: Look) -> str | None:
    """The days of the week, Monday to Friday, when nobody asks on a weekend; null: somebody does."""
    days = {(arrival.arrived_ns // DAY_NS + EPOCH_WEEKDAY) % 7 for arrival in look.recorded.arrivals}
    return None if days & {5, 6} else "mon-fri"
