"""What was asked: the recorded requests of a stretch of time, by the run of an engine that served them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from ..costing import arrow
from ..costing.segments import Bools
from ..events import REQUESTS, Run
from .arrivals import COLUMNS

if TYPE_CHECKING:
    from ..costing.periods import Period
    from ..storage.store import Store

Key = tuple[str, str]
"""An engine and its run."""


class Asked(NamedTuple):
    """Requests (rows with `arrivals.COLUMNS`) that tell their lengths."""

    served: dict[Key, pa.Table]
    """Those of each run on GPUs; runs that served none are not in there."""
    unknown: int
    """How many do not tell their lengths: nobody can replay them."""
    unserved: int
    """How many no engine of the store is known to have served: they were only metered in front of it, or imported."""


def read_asked(store: Store, window: Period | None, runs: Sequence[Run]) -> Asked:
    """What the runs served of the requests that arrived in `window`.

    An engine that tells no requests itself, as one whose metrics page is read, served what was metered in front of it
    under its name while it was up.
    """
    requests = in_window(store.read(REQUESTS, COLUMNS, None if window is None else window.from_ns), window)
    told = with_lengths(requests)
    by_run = _by_run(told)
    served = {key: by_run[key] for run in runs if run.gpus and (key := (run.engine_id, run.run_id)) in by_run}
    unserved = 0
    for engine_id, metered in _metered(by_run, runs).items():
        unseen = np.ones(metered.num_rows, np.bool_)
        for run in runs:
            if run.engine_id == engine_id and run.gpus:
                there = _came(metered, run.started_ns, run.wall_end_ns)
                if (key := (engine_id, run.run_id)) not in served and (there & unseen).any():
                    served[key] = arrow.where(metered, there & unseen)
                unseen &= ~there
        unserved += int(unseen.sum())
    return Asked(served, requests.num_rows - told.num_rows, unserved)


def in_window(requests: pa.Table, window: Period | None) -> pa.Table:
    """Those that arrived in the window; None: all."""
    return requests if window is None else arrived_in(requests, window.from_ns, window.to_ns)


def arrived_in(requests: pa.Table, from_ns: int, to_ns: int) -> pa.Table:
    """Those that arrived in [from, to)."""
    return arrow.where(requests, _came(requests, from_ns, to_ns))


def with_lengths(requests: pa.Table) -> pa.Table:
    """Those that tell how long prompt and answer were."""
    return arrow.where(requests, _tells(requests, "prompt_tokens") & _tells(requests, "output_tokens"))


def _by_run(requests: pa.Table) -> dict[Key, pa.Table]:
    engine, engines = arrow.coded(requests, "engine_id")
    run, runs = arrow.coded(requests, "run_id")
    place = engine * len(runs) + run
    places: list[int] = np.unique(place).tolist()
    return {
        (engines[each // len(runs)], runs[each % len(runs)]): arrow.pick(requests, np.flatnonzero(place == each))
        for each in places
    }


def _metered(by_run: dict[Key, pa.Table], runs: Sequence[Run]) -> dict[str, pa.Table]:
    """Requests of runs without GPUs, by the name of the engine that they were for."""
    without = {(run.engine_id, run.run_id) for run in runs if not run.gpus}
    found: defaultdict[str, list[pa.Table]] = defaultdict(list)
    for key, requests in by_run.items():
        if key in without:
            found[key[0]].append(requests)
    return {engine_id: pa.concat_tables(parts) for engine_id, parts in found.items()}


def _came(requests: pa.Table, from_ns: int, to_ns: int) -> Bools:
    arrived = arrow.ints(requests, "arrived_ns")
    return (arrived >= from_ns) & (arrived < to_ns)


def _tells(requests: pa.Table, name: str) -> Bools:
    column: Any = requests.column(name)
    return column.is_valid().to_numpy()
