"""The pseudo-step: an interval as a step that can be split and booked."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from ...costing.apportion import apportion
from ...events import Phase, Run, Share, Step
from ...roofline.step_model import StepModel
from .busy import NOT_SEEN, Busy, BusyClock
from .counters import Moved
from .estimate import Phases, Work
from .reading import Reading
from .split import Splitter, Who, seats


class Told(NamedTuple):
    """A pseudo-step with its cells; `why` says why its time is not known."""

    step: Step
    cells: tuple[Share, ...]
    why: str | None


class _Rows(NamedTuple):
    """What was computed in an interval."""

    prefill: int
    cached: int
    output: int
    rejected: int


@dataclass
class StepMaker:
    """Makes the pseudo-steps of one run, one after the other."""

    splitter: Splitter
    model: StepModel | None
    seq: int = 0
    """Number of the next step."""
    _clock: BusyClock = field(default_factory=BusyClock)
    _cached_ahead: int = 0
    """Cached tokens that the page told before the prompts that they are part of."""
    _last: tuple[Who, ...] = ()

    def seen(self, run: Run, before: Reading, now: Reading, moved: Moved, began_ns: int, ended_ns: int) -> Told:
        """The pseudo-step of an interval whose both ends were seen as planned."""
        rows = self._rows(moved)
        work = _work(before, now, moved, rows)
        busy = self._clock.look(before, now, moved, work, ended_ns - began_ns, self.model)
        if busy.ns is None:
            return self.unseen(run, now, moved, ended_ns, rows, busy.why or NOT_SEEN)
        idle_ns = ended_ns - began_ns - busy.ns
        return self._told(run, now, moved, rows, ended_ns - busy.ns, busy, idle_ns, None)

    def unseen(
        self, run: Run, now: Reading, moved: Moved, ended_ns: int, rows: _Rows | None = None, why: str = NOT_SEEN
    ) -> Told:
        """What moved in time whose use is not known: its tokens count, its time stays unobserved.

        A number is left out, so that the books see a hole.
        """
        self.seq += 1
        nothing = Busy(0, Phases(0, 0), "interval")
        return self._told(run, now, moved, rows or self._rows(moved), ended_ns, nothing, 0, why)

    def _rows(self, moved: Moved) -> _Rows:
        """Prompt rows computed and cached tokens always add up to the prompt tokens that moved."""
        prompt, cached, computed = (
            moved.tokens(noun) for noun in ("prompt_tokens", "cached_tokens", "computed_tokens")
        )
        output = moved.tokens("output_tokens") or 0
        rejected = max(0, (moved.tokens("draft_tokens") or 0) - (moved.tokens("accepted_tokens") or 0))
        if prompt is None:
            return _Rows(computed or 0, 0 if computed is None else cached or 0, output, rejected)
        self._cached_ahead += (cached or 0) if computed is None else prompt - computed
        served = min(max(self._cached_ahead, 0), prompt)
        self._cached_ahead -= served
        return _Rows(prompt - served, served, output, rejected)

    def _told(
        self,
        run: Run,
        now: Reading,
        moved: Moved,
        rows: _Rows,
        started_ns: int,
        busy: Busy,
        idle_ns: int,
        why: str | None,
    ) -> Told:
        duration_ns = busy.ns or 0
        riders = round(now.gauges.get("running", 0))
        used, blocks = _kv(now, run)
        held_ns = (used or 0) * duration_ns
        cells = self._cells(run, rows, riders, started_ns, held_ns, must_pay=duration_ns > 0)
        prefill_ns = _prefill_part(busy, duration_ns, cells)
        step = Step(
            engine_id=run.engine_id,
            run_id=run.run_id,
            step_seq=self.seq,
            started_ns=started_ns,
            duration_ns=duration_ns,
            idle_before_ns=idle_ns,
            gpus=run.gpus,
            prefill_ns=prefill_ns,
            decode_ns=None if prefill_ns is None else duration_ns - prefill_ns,
            running=riders,
            waiting=round(now.gauges.get("waiting", 0)),
            prefill_seqs=0,
            decode_seqs=riders,
            prefill_tokens=rows.prefill,
            decode_tokens=rows.output + rows.rejected,
            output_tokens=rows.output,
            cached_tokens=rows.cached,
            recomputed_tokens=0,
            rejected_tokens=rows.rejected,
            kv_blocks_used=used,
            kv_blocks_total=blocks,
            preemptions=moved.tokens("preemptions") or 0,
            held_by=None,
            flops=None,
            bytes=None,
            basis=busy.basis,
        )
        self.seq += 1
        return Told(step, cells, why)

    def _cells(
        self, run: Run, rows: _Rows, riders: int, started_ns: int, held_ns: int, *, must_pay: bool
    ) -> tuple[Share, ...]:
        computed, cached = self.splitter.computed.book(rows.prefill), self.splitter.cached.book(rows.cached)
        output = self.splitter.output.book(rows.output)
        rejected = dict(zip(output, apportion(rows.rejected, list(output.values())), strict=True)) if output else {}
        named = {(who, "prefill"): (computed.get(who, 0), 0, cached.get(who, 0)) for who in {*computed, *cached}}
        named |= {(who, "decode"): (tokens + rejected[who], tokens, 0) for who, tokens in output.items()}
        if named:
            self._last = tuple(sorted({who for who, _ in named}))
        elif must_pay:
            named = {(who, "decode"): (0, 0, 0) for who in self._last or (self.splitter.nobody,)}
        keys = sorted(named)
        weights = [named[key][0] for key in keys]
        decoding = [named[key][0] if key[1] == "decode" or not output else 0 for key in keys]
        held = apportion(held_ns, weights if any(weights) else [1] * len(keys)) if keys else []
        return tuple(
            _share(run, self.seq, started_ns, key, named[key], riding, kv)
            for key, riding, kv in zip(keys, seats(riders, decoding), held, strict=True)
        )


def _share(
    run: Run, seq: int, started_ns: int, key: tuple[Who, str], did: tuple[int, int, int], riding: int, held_ns: int
) -> Share:
    (tenant, tier), phase = key
    rows, output, cached = did
    name: Phase = "prefill" if phase == "prefill" else "decode"
    return Share(
        run.engine_id, run.run_id, seq, started_ns, "tenant", tenant, tier, name, riding, rows, output, cached, 0,
        held_ns, None,
    )  # fmt: skip


def _prefill_part(busy: Busy, duration_ns: int, cells: tuple[Share, ...]) -> int | None:
    """The prefill part of the step's time; all or nothing where only one phase has cells, None where nothing tells."""
    phases = {cell.phase for cell in cells}
    if phases != {"prefill", "decode"}:
        return duration_ns if phases == {"prefill"} else 0
    return None if busy.phases is None else busy.phases.prefill_ns


def _work(before: Reading, now: Reading, moved: Moved, rows: _Rows) -> Work:
    riding = [round(reading.gauges.get("running", 0)) for reading in (before, now)]
    riders = max(1, -(-sum(riding) // 2))
    first_tokens = sum(count for _, count in moved.histograms.get("ttft", ()))
    prompts = first_tokens or moved.tokens("requests") or 1
    return Work(rows.prefill, rows.output + rows.rejected, prompts, riders, _context(now))


def _context(now: Reading) -> int | None:
    """Tokens in the KV cache per sequence on board."""
    blocks, tokens, riders = now.facts.get("kv_blocks"), now.facts.get("block_tokens"), now.gauges.get("running")
    if not blocks or not tokens or not riders or now.kv_mean is None:
        return None
    return round(now.kv_mean * blocks * tokens / riders)


def _kv(now: Reading, run: Run) -> tuple[int | None, int | None]:
    """KV blocks in use and in all."""
    blocks = now.facts.get("kv_blocks") or run.kv_blocks
    if not blocks or now.kv_mean is None:
        return None, blocks
    return round(now.kv_mean * blocks), blocks
