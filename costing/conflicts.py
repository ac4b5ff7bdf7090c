"""Conflicts: runs that claim more GPUs than there are, to the instant; what a day's sums would net out shows here."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ..events import Run
    from .capacity import Paid, Place
    from .periods import Period


class Conflict(NamedTuple):
    """Runs on one host that together claim too many GPUs in [from, to) UTC ns."""

    host: str
    gpu_type: str
    from_ns: int
    to_ns: int
    excess_gpus: int
    """GPUs claimed beyond those declared, or claims on a device beyond its first."""
    runs: tuple[str, ...]
    """Who claims them, as engine/run."""
    gpu_uuids: tuple[str, ...]
    """The devices that several runs claim; empty where what is declared does not suffice."""

    @property
    def gpu_ns(self) -> int:
        """GPU time claimed too often."""
        return (self.to_ns - self.from_ns) * self.excess_gpus


def beyond_declared(runs: Sequence[Run], declared: Mapping[Place, Sequence[Paid]], period: Period) -> list[Conflict]:
    """Where runs have more GPUs than are declared on their place; none where nothing is declared."""
    by_place: defaultdict[tuple[str, str], list[Run]] = defaultdict(list)
    for run in runs:
        by_place[run.host, run.gpu_type].append(run)
    found: list[Conflict] = []
    for place, paid in declared.items():
        for start, end, up in _sweep(_clipped(by_place[place], period)):
            gpus = sum(run.gpus for run in up)
            found += [
                Conflict(*place, max(start, part.from_ns), min(end, part.to_ns), gpus - part.gpus, _names(up), ())
                for part in paid
                if gpus > part.gpus and max(start, part.from_ns) < min(end, part.to_ns)
            ]
    return found


def shared_devices(runs: Sequence[Run], period: Period) -> list[Conflict]:
    """Where several runs claim the same device of a host."""
    claims: defaultdict[tuple[str, str], list[Run]] = defaultdict(list)
    for run in runs:
        for gpu_uuid in run.gpu_uuids:
            claims[run.host, gpu_uuid].append(run)
    found = [
        Conflict(host, together[0].gpu_type, start, end, len(together) - 1, _names(together), (gpu_uuid,))
        for (host, gpu_uuid), claiming in claims.items()
        for start, end, together in _sweep(_clipped(claiming, period))
        if len(together) > 1
    ]
    return [_of_devices(list(same)) for _, same in groupby(sorted(found), key=lambda each: each[:6])]


def _of_devices(same: Sequence[Conflict]) -> Conflict:
    """One conflict of the same runs at the same time over several devices."""
    devices = tuple(device for each in same for device in each.gpu_uuids)
    return same[0]._replace(excess_gpus=sum(each.excess_gpus for each in same), gpu_uuids=devices)


def _clipped(runs: Sequence[Run], period: Period) -> list[tuple[int, int, Run]]:
    return [(max(run.started_ns, period.from_ns), min(run.wall_end_ns, period.to_ns), run) for run in runs]


def _sweep(spans: Sequence[tuple[int, int, Run]]) -> Iterator[tuple[int, int, list[Run]]]:
    """The stretches between all starts and ends of spans [from, to), and who runs in each; empty spans are nothing."""
    starts, ends = defaultdict[int, list[int]](list), defaultdict[int, list[int]](list)
    for number, (start, end, _) in enumerate(spans):
        if start < end:
            starts[start].append(number)
            ends[end].append(number)
    running: dict[int, Run] = {}
    for at, following in pairwise(sorted({*starts, *ends})):
        for number in ends[at]:
            del running[number]
        running |= {number: spans[number][2] for number in starts[at]}
        if running:
            yield at, following, list(running.values())


def _names(runs: Sequence[Run]) -> tuple[str, ...]:
    return tuple(sorted(f"{run.engine_id}/{run.run_id}" for run in runs))
