"""The bookkeeper: turns a run's steps into ledger lines, so that every nanosecond of its GPUs has one owner.

The run's wall clock is laid out as spans (steps, and what lies between them), which are cut at UTC minute borders and
summed. A step [a, b) ends at b − 1 ns, so one that ends on a border belongs to the minute before; its tokens, cached
ones included, and the requests that finish then belong to that minute too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from ..errors import FareboxError
from ..events import LEDGER, MINUTE_NS, Run
from . import arrow
from .cells import match_cells
from .names import Names, sum_by
from .segments import Bools, Ints, Segments, multiply_divide

KEYS = ("minute_ns", "account", "tenant_id", "tier", "phase", "basis")
COUNTS = ("gpu_ns", "prompt_tokens", "cached_tokens", "output_tokens", "requests", "kv_block_ns")
_NOBODY: dict[str, list[str]] = {"account": [""], "tenant_id": [""], "tier": [""], "phase": [""], "basis": ["step"]}
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
        basis = arrow.codes(steps, "basis", BASES)
        parts = [
            self._gaps(timeline, basis, covered_ns),
            *_book_shares(timeline, steps, shares, matched or match_cells(steps, shares)),
            self._requests(requests),
        ]
        lines = self._lines(_Entries.join(parts))
        self.covered_ns = covered_ns
        if len(timeline.seq):
            self.steps = int(timeline.seq[-1]) + 1
            self._basis = max(0, int(basis[-1]))
        return lines

    def skip(self, to_ns: int) -> pa.Table:
        """Ledger lines of time until `to_ns` (UTC) that nobody saw; none when it is booked already."""
        start, end = np.array([self.covered_ns]), np.array([max(to_ns, self.covered_ns)])
        pieces = _Pieces.cut(start, end)
        names = Names(np.zeros_like(pieces.row), _NOBODY | {"account": ["unobserved"]})
        unobserved = _Entries(pieces.minute, names, {"gpu_ns": (pieces.end - pieces.start) * self.run.gpus})
        self.covered_ns = int(end[0])
        return self._lines(_Entries.join([unobserved]))

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

    def _gaps(self, timeline: _Timeline, basis: Ints, covered_ns: int) -> _Entries:
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
        gpu_ns = (pieces.end - pieces.start) * self.run.gpus
        names = Names(
            (accounts * len(BASES) + bases)[some][pieces.row],
            _NOBODY | {"account": [*GAP_ACCOUNTS], "basis": [*BASES]},
        )
        return _Entries(pieces.minute, names, {"gpu_ns": gpu_ns})

    def _requests(self, requests: pa.Table) -> _Entries:
        finished = np.maximum(arrow.ints(requests, "finished_ns", LedgerError) - 1, self.run.started_ns)
        who = Names.read(len(finished), {"tenant_id": requests, "tier": requests}, {})
        vocabularies = _NOBODY | {"account": ["tenant"]} | who.vocabularies | {"phase": ["decode"]}
        names = Names(who.code, vocabularies)
        return _Entries(finished // MINUTE_NS, names, {"requests": np.ones_like(finished)})

    def _lines(self, entries: _Entries) -> pa.Table:
        run, size = self.run, len(entries.minute)
        constant = {"engine_id": run.engine_id, "host": run.host, "gpu_type": run.gpu_type, "model": run.model}
        data: Any = {name: [text] * size for name, text in constant.items()}
        data |= {"minute_ns": entries.minute * MINUTE_NS} | entries.names.texts() | entries.counts
        return pa.table(data, schema=LEDGER.schema)


class _Entries(NamedTuple):
    """What is entered into the ledger: minutes (int64[entries], counted), names, and COUNTS (0 those that lack)."""

    minute: Ints
    names: Names
    counts: dict[str, Ints]

    def filter(self, keep: Bools) -> _Entries:
        """Some of the entries."""
        counts = {name: column[keep] for name, column in self.counts.items()}
        return _Entries(self.minute[keep], self.names.of(self.names.code[keep]), counts)

    @classmethod
    def join(cls, parts: Sequence[_Entries]) -> _Entries:
        """Those of all parts by minute and names, added up."""
        names = Names.join([part.names for part in parts])
        minute = np.concatenate([part.minute for part in parts])
        columns = [
            np.concatenate([part.counts.get(name, np.zeros_like(part.minute)) for part in parts]) for name in COUNTS
        ]
        return cls.sum(minute, names, dict(zip(COUNTS, columns, strict=True)))

    @classmethod
    def sum(cls, minute: Ints, names: Names, counts: Mapping[str, Ints]) -> _Entries:
        """Rows (int64[rows]) by minute and names, added up."""
        first, size = int(minute.min()) if len(minute) else 0, names.size
        place, sums = sum_by((minute - first) * size + names.code, *counts.values())
        return cls(first + place // size, names.of(place % size), dict(zip(counts, sums, strict=True)))


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

    def minutes(self) -> tuple[Ints, Bools]:
        """The minute (counted) in which each step begins, and whether it ends in another one."""
        if not len(self.started):
            return self.started, np.zeros(0, np.bool_)
        first, last = (int(moment) // MINUTE_NS for moment in (self.started[0], self.started[-1]))
        begin = np.searchsorted(self.started, np.arange(first, last + 2) * MINUTE_NS)
        minute = np.repeat(np.arange(first, last + 1), np.diff(begin))
        crosses = np.zeros(len(minute), np.bool_)
        ends = begin[1:][np.diff(begin) > 0] - 1
        crosses[ends] = self.ended[ends] > (minute[ends] + 1) * MINUTE_NS
        return minute, crosses

    def end_ns(self, covered_ns: int) -> int:
        """End of the last step, or `covered_ns` when there is none."""
        return int(self.ended[-1]) if len(self.ended) else covered_ns


class _Pieces(NamedTuple):
    """Spans cut at minute borders, int64[pieces]: the span's row, the minute (counted), start and end in it."""

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
        minute = first[row] + number
        start = np.maximum(started[row], minute * MINUTE_NS) - started[row]
        end = np.minimum(ended[row], (minute + 1) * MINUTE_NS) - started[row]
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


def _book_shares(
    timeline: _Timeline, steps: pa.Table, shares: pa.Table, matched: tuple[Ints, Segments]
) -> list[_Entries]:
    """What cells paid and did, by minute; tokens go to the minute in which the step ends."""
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
    done = _Done(gpu_ns, kv, rows, cached, output)
    minute, crosses = timeline.minutes()
    apart = int(minute[0]) - 1 if len(minute) else 0
    inside = _totals(names, np.where(crosses, apart, minute)[step], done)
    cut = _cut(names, timeline, step, done, np.flatnonzero(crosses[step]))
    return [inside.filter(inside.minute > apart), cut]


class _Done(NamedTuple):
    """What cells paid and did, int64[cells]."""

    gpu_ns: Ints
    kv_block_ns: Ints
    rows: Ints
    cached_tokens: Ints
    output_tokens: Ints

    def pick(self, rows: Ints) -> _Done:
        """Some of the cells."""
        return _Done(*(column[rows] for column in self))

    def counts(self, names: Names) -> dict[str, Ints]:
        """The columns of the ledger, for cells of these names: only what tenants do has tokens of prompts."""
        is_tenant = names.are("account", "tenant")
        cached = np.where(is_tenant, self.cached_tokens, 0)
        prompt = np.where(is_tenant & names.are("phase", "prefill"), self.rows, 0) + cached
        return {
            "gpu_ns": self.gpu_ns,
            "prompt_tokens": prompt,
            "cached_tokens": cached,
            "output_tokens": self.output_tokens,
            "kv_block_ns": self.kv_block_ns,
        }


def _totals(names: Names, minute: Ints, done: _Done) -> _Entries:
    """Sums over cells, each within one minute (int64[cells], counted)."""
    sums = _Entries.sum(minute, names, done._asdict())
    return sums._replace(counts=_Done(**sums.counts).counts(sums.names))


def _cut(names: Names, timeline: _Timeline, step: Ints, done: _Done, rows: Ints) -> _Entries:
    """The cells of steps that cross a border, cut there."""
    step, names, done = step[rows], names.of(names.code[rows]), done.pick(rows)
    steps, pieces = Segments.from_labels(step), _Pieces.cut(timeline.started[step], timeline.ended[step])
    counts = {name: np.where(pieces.last, column[pieces.row], 0) for name, column in done.counts(names).items()}
    counts |= {name: pieces.split(getattr(done, name), steps) for name in ("gpu_ns", "kv_block_ns")}
    return _Entries(pieces.minute, names.of(names.code[pieces.row]), counts)
