"""The bookkeeper: turns a run's steps into ledger lines, so that every nanosecond of its GPUs has one owner.

The run's wall clock is laid out as spans (steps, and what lies between them), which are cut at UTC minute borders and
summed. A step [a, b) ends at b − 1 ns, so one that ends on a border belongs to the minute before; its tokens, cached
ones included, and the requests that finish then belong to that minute too.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from ..errors import FareboxError
from ..events import LEDGER, MINUTE_NS, Run
from . import arrow
from .cells import match_cells
from .names import Names, group_rows
from .segments import Bools, Ints, Segments, multiply_divide

KEYS = ("minute_ns", "account", "tenant_id", "tier", "phase", "basis")
COUNTS = ("gpu_ns", "prompt_tokens", "cached_tokens", "output_tokens", "requests", "kv_block_ns")
GAP_ACCOUNTS = ("overhead", "unobserved", "idle")
BASES = ("step", "interval", "estimated")


class LedgerError(FareboxError, ValueError):
    """Steps that would count a nanosecond twice, or not at all."""


class Bookkeeper:
    """Books one run, in the order in which it happened.

    `covered_ns` (UTC) is where the ledger of the run ends so far, `steps` the next expected step_seq; both come from
    the store's progress when a run is taken up again, and default to the start of the run.
    """

    def __init__(self, run: Run, covered_ns: int | None = None, steps: int = 0) -> None:
        self.run = run
        self.covered_ns = run.started_ns if covered_ns is None else covered_ns
        self.steps = steps
        self._basis = 0
        """What time without a step rests on, as the newest step does: its place in BASES."""

    def book(
        self,
        steps: pa.Table,
        shares: pa.Table,
        requests: pa.Table,
        heartbeat_ns: int,
        matched: tuple[Ints, Segments] | None = None,
    ) -> pa.Table:
        """Ledger lines (LEDGER schema, one per key) of split steps and finished requests since the last call.

        Time from the start until the model is loaded is overhead; time before a step is idle; where step numbers are
        missing, only the step's `idle_before_ns` is idle and the rest unobserved; time up to `heartbeat_ns` (UTC) after
        the last step is idle. `matched` is what `match_cells` answers, where that is known. Raises LedgerError, and
        books nothing, for a step that begins before `covered_ns` or was booked before, and for shares that do not add
        up to their step; SplitError where the tables do not match.
        """
        timeline = _Timeline.read(steps)
        self._check(timeline)
        covered_ns = max(heartbeat_ns, timeline.end_ns(self.covered_ns))
        parts = [
            self._gaps(timeline, arrow.codes(steps, "basis", BASES), covered_ns),
            _book_shares(timeline, steps, shares, matched or match_cells(steps, shares)),
            self._requests(requests),
        ]
        lines = self._lines(arrow.total_by(pa.concat_tables(parts), KEYS))
        self.covered_ns = covered_ns
        if len(timeline.seq):
            self.steps = int(timeline.seq[-1]) + 1
            self._basis = max(0, int(arrow.codes(steps, "basis", BASES)[-1]))
        return lines

    def skip(self, to_ns: int) -> pa.Table:
        """Ledger lines of time until `to_ns` (UTC) that nobody saw; none when it is booked already."""
        start, end = np.array([self.covered_ns]), np.array([max(to_ns, self.covered_ns)])
        pieces = _Pieces.cut(start, end)
        lines = _rows(
            minute_ns=pieces.minute,
            account=arrow.same("unobserved", len(pieces.row)),
            basis=arrow.same("step", len(pieces.row)),
            gpu_ns=(pieces.end - pieces.start) * self.run.gpus,
        )
        self.covered_ns = int(end[0])
        return self._lines(arrow.total_by(lines, KEYS))

    def _check(self, timeline: _Timeline) -> None:
        numbers = np.concatenate([[self.steps - 1], timeline.seq])
        repeated = np.flatnonzero(numbers[1:] <= numbers[:-1])
        if len(repeated):
            raise LedgerError(f"{self._name(timeline, repeated[0])} comes after step {numbers[repeated[0]]}")
        overlap = timeline.before(self.covered_ns) - timeline.started
        early = np.flatnonzero(overlap > 0)
        if len(early):
            raise LedgerError(f"{self._name(timeline, early[0])} overlaps booked time by {overlap[early[0]]} ns")
        other = np.flatnonzero(timeline.gpus != self.run.gpus)
        if len(other):
            ran_on = timeline.gpus[other[0]]
            raise LedgerError(f"{self._name(timeline, other[0])} ran on {ran_on} GPUs, the run has {self.run.gpus}")

    def _name(self, timeline: _Timeline, index: int) -> str:
        return f"engine {self.run.engine_id} run {self.run.run_id}: step {timeline.seq[index]}"

    def _gaps(self, timeline: _Timeline, basis: Ints, covered_ns: int) -> pa.Table:
        """Time without a step: overhead until the model is loaded, unobserved where steps are missing, else idle.

        `basis` (int64[steps]) is each step's place in BASES, and that of the gap before it.
        """
        start = np.append(timeline.before(self.covered_ns), timeline.end_ns(self.covered_ns))
        end = np.append(timeline.started, covered_ns)
        gap = np.flatnonzero(end > start)
        expected = np.append(self.steps, timeline.seq + 1)[gap]
        start, end = start[gap], end[gap]
        hole = (np.append(timeline.seq, 0)[gap] != expected) & (gap < len(timeline.seq))
        loaded = np.clip(self.run.started_ns + self.run.load_ns, start, end)
        idle = np.where(hole, np.maximum(loaded, end - np.append(timeline.idle_before, 0)[gap]), loaded)
        starts = np.concatenate([start, loaded, idle])
        ends = np.concatenate([loaded, idle, end])
        accounts = np.repeat(np.arange(len(GAP_ACCOUNTS)), len(start))
        last = basis[-1] if len(basis) else self._basis
        bases = np.tile(np.maximum(np.append(basis, last)[gap], 0), len(GAP_ACCOUNTS))
        some = ends > starts
        pieces = _Pieces.cut(starts[some], ends[some])
        return _rows(
            minute_ns=pieces.minute,
            account=arrow.words(GAP_ACCOUNTS, accounts[some][pieces.row]),
            basis=arrow.words(BASES, bases[some][pieces.row]),
            gpu_ns=(pieces.end - pieces.start) * self.run.gpus,
        )

    def _requests(self, requests: pa.Table) -> pa.Table:
        finished = np.maximum(arrow.ints(requests, "finished_ns", LedgerError) - 1, self.run.started_ns)
        names = Names.read(len(finished), {"tenant_id": requests, "tier": requests}, {})
        minute = finished // MINUTE_NS
        order, starts = group_rows(minute, names.code, names.size)
        first = order[starts]
        return _rows(
            minute_ns=minute[first] * MINUTE_NS,
            account=arrow.same("tenant", len(first)),
            **names.pick(first).columns(),
            phase=arrow.same("decode", len(first)),
            basis=arrow.same("step", len(first)),
            requests=np.diff(starts, append=len(order)),
        )

    def _lines(self, totals: pa.Table) -> pa.Table:
        run = self.run
        constant = {"engine_id": run.engine_id, "host": run.host, "gpu_type": run.gpu_type, "model": run.model}
        for name, text in constant.items():
            totals = totals.append_column(name, arrow.same(text, len(totals)))
        lines = totals.select(LEDGER.schema.names).cast(LEDGER.schema)
        return lines.sort_by([(name, "ascending") for name in (*LEDGER.sort, "basis")])


class _Timeline(NamedTuple):
    """Steps as columns, int64[steps], in order."""

    seq: Ints
    started: Ints
    ended: Ints
    idle_before: Ints
    gpus: Ints

    @classmethod
    def read(cls, steps: pa.Table) -> _Timeline:
        started = arrow.ints(steps, "started_ns", LedgerError)
        duration, idle_before = (arrow.counts(steps, name, LedgerError) for name in ("duration_ns", "idle_before_ns"))
        seq, gpus = (arrow.ints(steps, name, LedgerError) for name in ("step_seq", "gpus"))
        return cls(seq, started, started + duration, idle_before, gpus)

    def before(self, covered_ns: int) -> Ints:
        """For each step, the instant up to which time is booked before it."""
        return np.concatenate([[covered_ns], self.ended])[:-1]

    def end_ns(self, covered_ns: int) -> int:
        """End of the last step, or `covered_ns` when there is none."""
        return int(self.ended[-1]) if len(self.ended) else covered_ns


class _Pieces(NamedTuple):
    """Spans cut at minute borders, int64[pieces]: the span's row, the minute, start and end since the span began."""

    row: Ints
    minute: Ints
    start: Ints
    end: Ints
    last: Bools

    @classmethod
    def cut(cls, started: Ints, ended: Ints) -> _Pieces:
        first = started // MINUTE_NS
        count = np.maximum(started, ended - 1) // MINUTE_NS - first + 1
        row = np.repeat(np.arange(len(count)), count)
        number = np.arange(len(row)) - np.repeat(np.cumsum(count) - count, count)
        minute = (first[row] + number) * MINUTE_NS
        start = np.maximum(started[row], minute) - started[row]
        end = np.minimum(ended[row], minute + MINUTE_NS) - started[row]
        return cls(row, minute, start, end, number == count[row] - 1)

    def split(self, amount: Ints, steps: Segments) -> Ints:
        """Each piece's part of its span's `amount` (int64[spans]), by floors of amount cumulated · elapsed / length.

        Cumulated over the cells of a step, so that they fill each minute to the nanosecond, whatever each of them is
        rounded to; and taken from the last border back, so that no part is negative.
        """
        until = amount[self.row]
        borders_after = np.flatnonzero(self.last)[self.row] - np.arange(len(self.row))
        for border in range(1, int(borders_after.max(initial=0)) + 1):
            at = np.flatnonzero(borders_after == border)
            cells = Segments.from_labels(steps.of[self.row[at]])
            floors, _ = multiply_divide(cells.cumulate(until[at + 1]), self.end[at], self.end[at + 1])
            until[at] = cells.difference(floors)
        until[1:] -= np.where(self.last[:-1], 0, until[:-1])
        return until


def _book_shares(timeline: _Timeline, steps: pa.Table, shares: pa.Table, matched: tuple[Ints, Segments]) -> pa.Table:
    """Rows for what cells paid and did, by minute; tokens go to the minute in which the step ends."""
    step, segments = matched
    gpu_ns, kv, rows, cached, output = (
        arrow.counts(shares, name, LedgerError)
        for name in ("gpu_ns", "kv_block_ns", "rows", "cached_tokens", "output_tokens")
    )
    at = step[segments.starts]
    residual = segments.sum(gpu_ns) - ((timeline.ended - timeline.started) * timeline.gpus)[at]
    if residual.any():
        wrong = int(np.flatnonzero(residual)[0])
        raise LedgerError(f"step {timeline.seq[at[wrong]]}: its shares are {residual[wrong]} GPU·ns off its length")
    names = Names.read(len(step), dict.fromkeys(KEYS[1:-1], shares) | {"basis": steps}, {"basis": step})
    is_tenant = names.are("account", "tenant")
    cached = np.where(is_tenant, cached, 0)
    prompt = np.where(is_tenant & names.are("phase", "prefill"), rows, 0) + cached
    done = _Done(gpu_ns, kv, prompt, cached, output)
    minute = timeline.started // MINUTE_NS
    crosses = (minute != np.maximum(timeline.started, timeline.ended - 1) // MINUTE_NS)[step]
    inside = _totals(names, minute[step], done, ~crosses)
    return pa.concat_tables([inside, _cut(names, timeline, step, done, np.flatnonzero(crosses))])


class _Done(NamedTuple):
    """What cells paid and did, int64[cells]."""

    gpu_ns: Ints
    kv_block_ns: Ints
    prompt_tokens: Ints
    cached_tokens: Ints
    output_tokens: Ints


def _totals(names: Names, minute: Ints, done: _Done, rows: Bools) -> pa.Table:
    """Sums over those cells in `rows` of one minute and the same names; `minute` (int64[cells]) counts minutes."""
    kept = np.flatnonzero(rows)
    order, starts = group_rows(minute[kept], names.code[kept], names.size)
    order = kept[order]
    first = order[starts]
    return _rows(
        minute_ns=minute[first] * MINUTE_NS,
        **names.pick(first).columns(),
        **{
            name: np.add.reduceat(column[order], starts) if len(starts) else column[:0]
            for name, column in done._asdict().items()
        },
    )


def _cut(names: Names, timeline: _Timeline, step: Ints, done: _Done, rows: Ints) -> pa.Table:
    """The cells of steps that cross a border, cut there."""
    step, done = step[rows], _Done(*(column[rows] for column in done))
    steps, pieces = Segments.from_labels(step), _Pieces.cut(timeline.started[step], timeline.ended[step])
    tokens = {
        name: np.where(pieces.last, column[pieces.row], 0)
        for name, column in done._asdict().items()
        if name.endswith("_tokens")
    }
    return _rows(
        minute_ns=pieces.minute,
        **names.pick(rows[pieces.row]).columns(),
        gpu_ns=pieces.split(done.gpu_ns, steps),
        kv_block_ns=pieces.split(done.kv_block_ns, steps),
        **tokens,
    )


def _rows(minute_ns: Ints, **columns: Ints | pa.Array[Any] | pa.ChunkedArray[Any]) -> pa.Table:
    """A table of KEYS and COUNTS; texts that are not given are empty, counts that are not given are 0."""
    empty, zero = arrow.same("", len(minute_ns)), np.zeros_like(minute_ns)
    defaults = dict.fromkeys(KEYS, empty) | dict.fromkeys(COUNTS, zero)
    data: Any = defaults | columns | {"minute_ns": minute_ns}
    return pa.table(data)
