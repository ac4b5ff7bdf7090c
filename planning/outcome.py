"""The outcome of a replay: all its runs, billed as a report bills them, and how long people waited."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from ..costing import arrow
from ..costing.books import Books
from ..costing.line import Line
from ..costing.report import Report, build_report
from ..costing.run_summary import Quantiles, tpot, ttft
from ..costing.segments import Bools, Ints
from ..events import Rate
from .slo import Slo, slo_of
from .tally import Lived, Steps, one_ledger


class Waits(NamedTuple):
    """How long a tenant's requests took. Null where no request tells: none had a first, or a second token."""

    requests: int
    unserved: int
    """Those without an answer to the end: hung up, refused or failed."""
    ttft: Quantiles | None
    tpot: Quantiles | None
    within: float | None
    """Part of the requests within the SLO, 0…1; those without a first token are not. Null: no promise, no request."""

    @property
    def latencies(self) -> tuple[int | None, int | None, int | None, int | None]:
        """Median and 99th percentile of the TTFT, then of the TPOT, in nanoseconds; null where none is told."""
        (ttft_p50, ttft_p99), (tpot_p50, tpot_p99) = _both(self.ttft), _both(self.tpot)
        return ttft_p50, ttft_p99, tpot_p50, tpot_p99


def _both(told: Quantiles | None) -> tuple[int | None, int | None]:
    return (None, None) if told is None else (told.p50_ns, told.p99_ns)


class Usage(NamedTuple):
    """How the GPUs were used, parts of 0…1. Null where there is nothing to measure, or no datasheet."""

    wall_gpu_ns: int
    busy_gpu_ns: int
    no_step: float | None
    """Part of the wall without a step."""
    empty_seats: float | None
    """Part of the seats without a rider, while steps ran."""
    compute_idle: float | None
    """Part of the datasheet's arithmetic that steps left unused."""
    bandwidth_used: float | None
    """Part of the datasheet's memory bandwidth that steps used."""
    mean_running: float | None
    preemptions: int

    @property
    def occupancy(self) -> float | None:
        """Part of the seats with a rider, while steps ran."""
        return None if self.empty_seats is None else 1 - self.empty_seats


@dataclass(frozen=True)
class Outcome:
    """What a replay came to: `rates` are those that hold for it."""

    lived: tuple[Lived, ...]
    rates: tuple[Rate, ...]

    @cached_property
    def ledger(self) -> pa.Table:
        """The ledger of all runs, one line per key."""
        return one_ledger([each.ledger for each in self.lived])

    @cached_property
    def requests(self) -> pa.Table:
        """The requests of all runs, in columns as `tally.KEPT`."""
        return pa.concat_tables([each.requests for each in self.lived]).unify_dictionaries()

    @cached_property
    def bill(self) -> Report:
        """The bill by tenant, with idle time on its own line: to the micro-unit what a report of such runs says."""
        runs = tuple(each.run for each in self.lived)
        return build_report(Books(self.ledger, runs, rates=self.rates))

    @cached_property
    def steps(self) -> Steps:
        """Sums over all steps."""
        total = Steps()
        for each in self.lived:
            total = total.plus(each.steps)
        return total

    @cached_property
    def usage(self) -> Usage:
        """How the GPUs were used."""
        steps = self.steps
        wall = sum((each.run.wall_end_ns - each.run.started_ns) * each.run.gpus for each in self.lived)
        idle = sum(line.gpu_ns for line in self.bill.lines if line.account == "idle")
        return Usage(
            wall_gpu_ns=wall,
            busy_gpu_ns=steps.busy_gpu_ns,
            no_step=_part(idle, wall),
            empty_seats=_rest(_part(steps.running_ns, steps.seat_ns)),
            compute_idle=_rest(_part(steps.flops, steps.most_flops)),
            bandwidth_used=_part(steps.bytes, steps.most_bytes),
            mean_running=_part(steps.running_ns, steps.busy_ns),
            preemptions=steps.preemptions,
        )

    @property
    def busy_micro(self) -> int | None:
        """What all time in steps and loading costs, without idle time; null without a rate."""
        known = [line.amount_micro for line in self.bill.lines if line.account not in ("idle", "unobserved")]
        amounts = [amount for amount in known if amount is not None]
        return sum(amounts) if self.bill.is_priced else None

    @property
    def total_micro(self) -> int | None:
        """The invoice: all time that the engines were up; null without a rate."""
        return self.bill.total.amount_micro if self.bill.is_priced else None

    @property
    def is_whole(self) -> bool:
        """Whether every engine's time has a rate, so that amounts are no lower bounds."""
        return self.bill.is_priced and not self.bill.total.unrated_gpu_ns

    def line(self, tenant: str) -> Line | None:
        """A tenant's line of the bill; None where it has none."""
        return self._lines.get(tenant)

    @cached_property
    def _lines(self) -> dict[str, Line]:
        return {line.keys[0]: line for line in self.bill.lines if line.account == "tenant"}

    def waits(self, tenant: str | None = None, slos: Sequence[Slo] = ()) -> Waits:
        """How long a tenant's requests took; None: everybody's."""
        requests = self.requests if tenant is None else arrow.where(self.requests, self._asked_by(tenant))
        codes, reasons = arrow.coded(requests, "finish_reason")
        answered = np.array([reason in ("stop", "length") for reason in reasons], np.bool_)[codes]
        return Waits(
            requests=requests.num_rows,
            unserved=requests.num_rows - int(answered.sum()),
            ttft=ttft(requests),
            tpot=tpot(arrow.where(requests, _has_first(requests))),
            within=_within(requests, tenant, slos),
        )

    def _asked_by(self, tenant: str) -> Bools:
        codes, tenants = self._tenant_codes
        wanted = tenants.index(tenant) if tenant in tenants else -1
        return codes == wanted

    @cached_property
    def _tenant_codes(self) -> tuple[Ints, list[str]]:
        return arrow.coded(self.requests, "tenant_id")


def _has_first(requests: pa.Table) -> Bools:
    column: Any = requests.column("first_token_ns")
    known: Bools = column.is_valid().to_numpy()
    return known


def _within(requests: pa.Table, tenant: str | None, slos: Sequence[Slo]) -> float | None:
    """Part of the requests of promised tenants that were within what was promised."""
    if not slos or not requests.num_rows:
        return None
    codes, tenants = arrow.coded(requests, "tenant_id")
    good, bound = np.ones(len(codes), np.bool_), np.zeros(len(codes), np.bool_)
    column: Any = requests.column("first_token_ns")
    first = column.fill_null(0).to_numpy()
    waited = first - arrow.ints(requests, "arrived_ns")
    more = np.maximum(arrow.ints(requests, "output_tokens") - 1, 0)
    gap = np.where(more > 0, (arrow.ints(requests, "finished_ns") - first) // np.maximum(more, 1), 0)
    for code, name in enumerate(tenants):
        slo = slo_of(slos, name)
        mine = codes == code
        if slo is None:
            continue
        bound |= mine
        if slo.ttft_ns is not None:
            good &= ~mine | (waited <= slo.ttft_ns)
        if slo.tpot_ns is not None:
            good &= ~mine | (gap <= slo.tpot_ns)
    good &= _has_first(requests)
    return float(good[bound].mean()) if bound.any() else None


def _part(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def _rest(part: float | None) -> float | None:
    return None if part is None else 1 - part
