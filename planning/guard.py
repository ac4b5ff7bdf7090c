"""The guard: what a change may not do to anybody's latency."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..costing.run_summary import Quantiles
from .outcome import Waits
from .slo import Slo, slo_of
from .words import wait_text

_SECOND_NS = 1_000_000_000
TWICE, UNNOTICED_TTFT_NS, UNNOTICED_TPOT_NS = 2, _SECOND_NS, 100_000_000
"""Without any promise nobody's p99 may more than double, unless it stays below what readers notice."""
TENFOLD, PATIENT_NS = 10, 60 * _SECOND_NS
"""Whoever has no promise where others have one is patient."""
LOST = 0.01
"""Part of a tenant's requests that may end without an answer more than before."""


def broken(before: Mapping[str, Waits], after: Mapping[str, Waits], slos: Sequence[Slo]) -> str | None:
    """What a change does that it may not, in words; null: nothing.

    A promise that was not kept before is not broken as long as it does not get worse.
    """
    for tenant, now in after.items():
        then = before[tenant]
        if now.unserved > then.unserved + LOST * max(now.requests, 1):
            return f"{now.unserved - then.unserved} more requests of {tenant} end without an answer"
        slo = slo_of(slos, tenant)
        for name, limit in _limits(then, slo, bool(slos)).items():
            had, has = _p99(getattr(then, name)), _p99(getattr(now, name))
            most = max(limit or 0, had or 0)
            if limit is not None and has is not None and has > most:
                return f"p99 {name.upper()} of {tenant} would be {_apart(has, most)}, and {wait_text(most)} is the most"
    return None


def _apart(ns: int, most: int) -> str:
    """A wait beyond the most that is allowed, told so that it does not read like it."""
    text = wait_text(ns)
    return text if text != wait_text(most) else f"just above {text}"


def _limits(then: Waits, slo: Slo | None, has_promises: bool) -> dict[str, int | None]:
    if slo is not None:
        return {"ttft": slo.ttft_ns, "tpot": slo.tpot_ns}
    factor, ttft, tpot = TWICE, UNNOTICED_TTFT_NS, UNNOTICED_TPOT_NS
    if has_promises:
        factor, ttft, tpot = TENFOLD, PATIENT_NS, _SECOND_NS
    return {"ttft": _more(then.ttft, factor, ttft), "tpot": _more(then.tpot, factor, tpot)}


def _more(then: Quantiles | None, factor: int, least: int) -> int | None:
    return None if then is None else max(factor * then.p99_ns, least)


def _p99(quantiles: Quantiles | None) -> int | None:
    return None if quantiles is None else quantiles.p99_ns
