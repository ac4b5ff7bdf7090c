"""Places: how what finance pays for a host's GPUs compares with what was measured there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from ..events import MINUTE_NS, Run
from .capacity import Place
from .periods import Period
from .pricing import Priced


class PlaceTime(NamedTuple):
    """Time of one host's GPUs of one type within a period, in GPU-nanoseconds."""

    host: str
    gpu_type: str
    declared_gpu_ns: int
    """Declared capacity."""
    walls_gpu_ns: int
    """Runs' walls at times that no capacity declares."""
    unobserved_gpu_ns: int
    """Declared without a run."""
    excess_gpu_ns: int
    """Measured beyond what is declared: a problem."""
    last_seen_ns: int | None
    """Last heartbeat of an engine that went silent within the period (UTC); null: none did."""


def places_of(priced: Priced, period: Period, runs: Sequence[Run]) -> tuple[PlaceTime, ...]:
    """Declared and measured time by place, in order."""
    declared, walls = Counter[Place](), Counter[Place]()
    unobserved, excess = Counter[Place](), Counter[Place]()
    for totals, slices in ((declared, priced.expected.declared_ns), (walls, priced.expected.walls_ns)):
        for part, gpu_ns in slices.items():
            totals[part.place] += gpu_ns
    for part, gpu_ns in priced.expected.excess_ns.items():
        excess[part.place] += gpu_ns
    for part, gpu_ns in priced.unobserved.items():
        unobserved[part.place] += max(gpu_ns, 0)
        excess[part.place] += max(-gpu_ns, 0)
    silent = _last_seen(period, runs)
    return tuple(
        PlaceTime(*place, declared[place], walls[place], unobserved[place], excess[place], silent.get(place))
        for place in sorted({*declared, *walls, *excess})
    )


def _last_seen(period: Period, runs: Sequence[Run]) -> dict[Place, int]:
    """The earliest last heartbeat of each place's engines that fell silent before the period's last minute."""
    newest = {run.engine_id: run for run in sorted(runs, key=lambda run: run.started_ns)}
    found: dict[Place, int] = {}
    for run in newest.values():
        if run.ended_ns is None and period.from_ns <= run.heartbeat_ns < period.to_ns - MINUTE_NS:
            place = Place(run.host, run.gpu_type)
            found[place] = min(found.get(place, run.heartbeat_ns), run.heartbeat_ns)
    return found
