"""Whether what is recorded can be priced: rates, and the GPUs that are paid for."""

from __future__ import annotations

from ...costing.rating import RateError, find_rate
from ...events import CAPACITIES, SOURCE_STATES, Run, newest_states
from ...storage.store import Store
from .check import Check

_MOST_NAMED = 5


def check_rates(store: Store) -> Check:
    """A rate for every run, at its newest instant."""
    rates, runs = store.rates(), store.runs()
    advice = "add one: `farebox rates add STORE --gpu-type TYPE --price 4.29`"
    try:
        bare = [run for run in runs if find_rate(rates, run.gpu_type, _newest(run), run.host, run.engine_id) is None]
    except RateError as error:
        return Check("rates", "bad", str(error), "`farebox rates list STORE` shows them all")
    if bare:
        names = sorted({f"{run.engine_id} ({run.gpu_type} on {run.host})" for run in bare})
        return Check("rates", "bad", f"no rate for {_some(names)}: its time has no price", advice)
    if not rates:
        return Check("rates", "note", "no rate yet: nothing has a price", advice)
    return Check("rates", "ok", f"{len(rates)} rates; every run has one")


def check_capacity(store: Store) -> Check:
    """Whether every machine that ran is declared; without, idle machines are free."""
    declared = store.settings(CAPACITIES)
    advice = "declare what you pay for: `farebox hosts add STORE HOST --gpus 8 --type TYPE`"
    if not declared:
        return Check("capacity", "note", "no GPUs declared: time without a run is not on any bill", advice)
    known = {(one.host, one.gpu_type) for one in declared}
    absent = sorted({f"{run.host} ({run.gpu_type})" for run in store.runs() if (run.host, run.gpu_type) not in known})
    if absent:
        return Check("capacity", "note", f"runs on machines that are not declared: {_some(absent)}", advice)
    return Check("capacity", "ok", f"{len(declared)} declarations; every run is on one")


def check_sources(store: Store) -> list[Check]:
    """How every source stood when it was last looked at."""
    return [
        Check(
            f"source {one.source}", "ok" if one.state == "up" else "bad", ": ".join(filter(None, (one.state, one.why)))
        )
        for one in sorted(newest_states(store.settings(SOURCE_STATES)))
    ]


def _newest(run: Run) -> int:
    return max(run.started_ns, run.wall_end_ns - 1)


def _some(names: list[str]) -> str:
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(names[:_MOST_NAMED]) + more
