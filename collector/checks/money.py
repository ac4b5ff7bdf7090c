"""Whether what is recorded can be priced: rates, and the GPUs that are paid for."""

from __future__ import annotations

from datetime import UTC, datetime
from shlex import quote

from ...costing.rating import RateError, find_rate
from ...events import CAPACITIES, SOURCE_STATES, Run, SourceState, newest_states
from ...storage.store import Store
from .check import Check, Level

_MOST_NAMED = 5


def check_rates(store: Store) -> Check:
    """A rate for every run, at its newest instant."""
    rates, runs, place = store.rates(), _on_gpus(store), quote(str(store.path))
    try:
        bare = [run for run in runs if find_rate(rates, run.gpu_type, _newest(run), run.host, run.engine_id) is None]
    except RateError as error:
        return Check("rates", "bad", str(error), f"`farebox rates list {place}` shows them all")
    lacking = bare[0].gpu_type if bare else "TYPE"
    advice = f"add one: `farebox rates add {place} --gpu-type {quote(lacking)} --price PRICE`"
    if bare:
        names = sorted({f"{run.engine_id} ({run.gpu_type} on {run.host})" for run in bare})
        return Check("rates", "bad", f"no rate for {_some(names)}: its time has no price", advice)
    if not rates:
        return Check("rates", "note", "no rate yet: nothing has a price", advice)
    return Check("rates", "ok", f"every run has one, of {len(rates)}")


def check_capacity(store: Store) -> Check:
    """Whether every machine that ran is declared; without, idle machines are free."""
    declared = store.settings(CAPACITIES)
    known = {(one.host, one.gpu_type) for one in declared}
    absent = sorted({(run.host, run.gpu_type) for run in _on_gpus(store)} - known)
    host, gpu_type = absent[0] if absent else ("HOST", "TYPE")
    add = f"farebox hosts add {quote(str(store.path))} {quote(host)} --gpus NUMBER --type {quote(gpu_type)}"
    advice = f"declare what you pay for: `{add}`"
    if not declared:
        return Check("capacity", "note", "no GPUs declared: time without a run is not on any bill", advice)
    if absent:
        named = _some([f"{host} ({gpu_type})" for host, gpu_type in absent])
        return Check("capacity", "note", f"runs on machines that are not declared: {named}", advice)
    return Check("capacity", "ok", f"{len(declared)} declarations; every run is on one")


def check_sources(store: Store) -> list[Check]:
    """How every source stood when it was last looked at."""
    levels: dict[str, Level] = {"up": "ok", "degraded": "note", "down": "bad"}
    return [
        Check(f"source {one.source}", levels[one.state], ": ".join(filter(None, (_since(one), one.why))))
        for one in sorted(newest_states(store.settings(SOURCE_STATES)))
    ]


def _since(one: SourceState) -> str:
    since = datetime.fromtimestamp(one.since_ns / 1e9, UTC)
    return one.state if one.state == "up" else f"{one.state} since {since:%Y-%m-%d %H:%MZ}"


def _on_gpus(store: Store) -> list[Run]:
    """The runs whose time costs money; a gateway's or a proxy's does not."""
    return [run for run in store.runs() if run.gpus]


def _newest(run: Run) -> int:
    return max(run.started_ns, run.wall_end_ns - 1)


def _some(names: list[str]) -> str:
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(names[:_MOST_NAMED]) + more
