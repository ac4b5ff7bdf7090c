"""What is told again: the same as it was recorded, or something else."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...events import REQUESTS, SHARES, STEPS, Request, Share, Step
from .told import StepTold

if TYPE_CHECKING:
    from ...storage.store import Store

_COMPUTED = {"prefill_ns": None, "decode_ns": None, "flops": None}
HOT_NS = 3_600_000_000_000
"""What is younger than this is in the hot store, where it is found by its key."""


def other_steps(store: Store, told: Sequence[StepTold]) -> list[tuple[StepTold, str]]:
    """Those steps of one run, told again, that are not recorded as they are told, and why not."""
    if not told:
        return []
    engine_id, run_id = told[0].step[:2]
    window = _window([one.step.started_ns for one in told])
    steps = {
        step.step_seq: step
        for step in STEPS.from_arrow(store.read(STEPS, None, *window, engine_id))
        if step[1] == run_id
    }
    cells = _cells(SHARES.from_arrow(store.read(SHARES, None, *window, engine_id)), run_id)
    found: list[tuple[StepTold, str]] = []
    for one in told:
        recorded = steps.get(one.step.step_seq)
        if recorded is None:
            found.append((one, "later steps of its run were told before it"))
        elif not _is_same_step(recorded, one.step) or cells[one.step.step_seq] != [_known(c.share) for c in one.cells]:
            found.append((one, "it was told before with other content"))
    return found


def recorded_requests(store: Store, told: Mapping[str, Request], now_ns: int) -> dict[str, Request]:
    """Those of one run's requests that are recorded, as they are recorded, by id."""
    if not told:
        return {}
    some = next(iter(told.values()))
    found: list[Request] = list(store.hot_requests(some.engine_id, some.run_id, list(told)))
    old = [request.finished_ns for request in told.values() if request.finished_ns < now_ns - HOT_NS]
    if old:
        rows = store.read(REQUESTS, None, *_window(old), engine_id=some.engine_id)
        found += [one for one in REQUESTS.from_arrow(rows) if one.run_id == some.run_id and one.request_id in told]
    return {request.request_id: request for request in found}


def is_same_request(one: Request, other: Request) -> bool:
    """Whether two records of a request tell the same."""
    return one._replace(gpu_ns=None) == other._replace(gpu_ns=None)


def _is_same_step(one: Step, other: Step) -> bool:
    return one._replace(**_COMPUTED) == other._replace(**_COMPUTED)


def _cells(shares: Iterable[Share], run_id: str) -> Mapping[int, list[tuple[Any, ...]]]:
    cells: defaultdict[int, list[tuple[Any, ...]]] = defaultdict(list)
    for share in shares:
        if share.run_id == run_id and share.account != "underfill":
            cells[share.step_seq].append(_known(share))
    for same_step in cells.values():
        same_step.sort(key=lambda cell: cell[4:8])
    return cells


def _known(share: Share) -> tuple[Any, ...]:
    return tuple(share._replace(attn=0, gpu_ns=None))


def _window(instants: Sequence[int]) -> tuple[int, int]:
    return min(instants), max(instants) + 1
