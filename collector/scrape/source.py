"""A scraped engine as a source: each poll reads its page once and tells what happened since the poll before."""

from __future__ import annotations

from typing import NamedTuple

from ...errors import FareboxError
from ...events import Interval, Run, Share, SourceStanding, SourceState, Step
from ..standing import StandingLog
from .counters import Moved, carried, doubt, has_restarted, moved_between, moved_since_start
from .fetch import Fetcher, HttpFetcher, NobodyListensError, Target
from .interval import interval_of
from .llamacpp import RestingError
from .pace import PERIOD_S, Pace
from .pseudo_step import StepMaker, Told
from .reading import Reading
from .server import NoEnginePageError, Server
from .setup import Setup
from .split import Splitter, UsageFeed, moved_of_tenants

S = 1_000_000_000
JUMP_NS = 2 * S
"""How far the time of day may leave a run's clock before it is told."""
LOADING_NS = 3600 * S
"""How long an engine may take from the start of its process until it listens."""


class Look(NamedTuple):
    """What one poll found. `run` is the run's newest state, its heartbeat moved; None while there is none."""

    run: Run | None = None
    ended: Run | None = None
    """A run that ended before `run` began: the engine was started anew."""
    interval: Interval | None = None
    step: Step | None = None
    cells: tuple[Share, ...] = ()
    state: SourceState | None = None
    """How the source stands, when that is worth keeping."""
    standing: SourceStanding = "up"
    why: str | None = None
    """What is wrong or has to be said, in plain words."""
    reading: Reading | None = None
    """The page; counters that it lacks stand as they were last told."""
    is_of_gpus: bool = False
    """The page is of GPUs, not of an engine; then there is nothing else."""


class _Seen(NamedTuple):
    """A reading and when it was made, on the run's clock."""

    reading: Reading
    at_ns: int


class ScrapeSource:
    """Scrapes one engine. It knows nothing of a store; one thread polls it, `wait_s` after the poll before.

    `usage` says what tenants used, for the split. `not_before_ns`: up to where this engine's runs are recorded.
    """

    def __init__(
        self,
        target: Target,
        setup: Setup | None = None,
        *,
        source: str | None = None,
        period_s: float = PERIOD_S,
        usage: UsageFeed | None = None,
        not_before_ns: int = 0,
        remembered: Reading | None = None,
        fetcher: Fetcher | None = None,
    ) -> None:
        """`remembered` is the page as it was at `not_before_ns`: what moved since then counts."""
        self.target = target
        self.setup = setup or Setup()
        self.engine_id = self.setup.name(target)
        self._source = source or self.engine_id
        self._fetcher = fetcher or HttpFetcher(target)
        self._knows_usage = usage is not None
        self._splitter = Splitter(self.engine_id, usage, self.setup.tenant_id)
        self._pace = Pace(period_s)
        self._not_before_ns = not_before_ns
        self._remembered = remembered
        self._standing: StandingLog | None = None
        self._server = Server(target, self._fetcher)
        self._steps: StepMaker | None = None
        self._run: Run | None = None
        self._last: _Seen | None = None
        self._missed = False
        self._ahead_ns = 0
        self._refused_ns: int | None = None

    @property
    def wait_s(self) -> float:
        """How long to wait until the next poll."""
        return self._pace.wait_s

    def poll(self, now_ns: int, monotonic_ns: int) -> Look:
        """Read the page once. `now_ns` is the time of day (UTC), `monotonic_ns` a clock that never jumps.

        A page that cannot be read is a state of the source, never an error.
        """
        try:
            reading, took_s = self._server.read()
        except RestingError as error:
            return self._rest(monotonic_ns, now_ns, str(error))
        except NoEnginePageError as error:
            return self._failed(monotonic_ns, now_ns, str(error))._replace(is_of_gpus=True)
        except FareboxError as error:
            self._refused_ns = now_ns if isinstance(error, NobodyListensError) else self._refused_ns
            return self._failed(monotonic_ns, now_ns, str(error))
        at_ns = self._at(now_ns, monotonic_ns)
        notes = self.setup.unknown(reading) + reading.warnings + reading.hints
        if abs(now_ns - at_ns) > JUMP_NS and self._run is not None:
            notes.append(f"the time of day jumped by {(now_ns - at_ns) / S:+.0f} s: this run keeps its own clock")
        look = self._see(reading, at_ns, now_ns, monotonic_ns, took_s)
        assert self._last is not None
        return self._stand(look, [*([look.why] if look.why else []), *notes], self._last.reading)

    def part(self) -> Look:
        """End the run where it was last seen; the next page begins another one there, and what moved since counts."""
        if self._last is not None:
            self._remembered, self._not_before_ns = self._last.reading, self._last.at_ns
        return Look(ended=self._end())

    def close(self) -> Look:
        """Let go of the server; the run ends where it was last seen."""
        self._fetcher.close()
        return Look(ended=self._end())

    def _at(self, now_ns: int, monotonic_ns: int) -> int:
        """The instant on the run's clock, which is set to the time of day when the run begins."""
        if self._run is None:
            self._set_clock(now_ns, monotonic_ns)
        return monotonic_ns + self._ahead_ns

    def _set_clock(self, now_ns: int, monotonic_ns: int) -> None:
        last_ns = max(self._not_before_ns, self._last.at_ns if self._last else 0)
        self._ahead_ns = max(now_ns, last_ns) - monotonic_ns

    def _see(self, reading: Reading, at_ns: int, now_ns: int, monotonic_ns: int, took_s: float) -> Look:
        if self._remembered is not None:
            self._go_back(self._remembered, reading)
        last = self._last
        if last is None or self._run is None:
            look = self._first(reading, at_ns)
            self._pace.read(took_s, moved=True)
        elif has_restarted(last.reading, reading):
            look = self._restart(last, reading, now_ns, monotonic_ns)
            self._pace.read(took_s, moved=True)
        else:
            look = self._go_on(self._run, last, reading, at_ns)
            is_still = look.step is None or not (look.step.duration_ns or look.step.output_tokens)
            self._pace.read(took_s, moved=not is_still)
        self._missed = False
        self._pace.may_sleep = self._server.may_sleep
        return look

    def _go_back(self, remembered: Reading, reading: Reading) -> None:
        """Begin where somebody else stopped looking at the same engine; the time since then was not seen."""
        self._remembered = None
        if remembered.engine is reading.engine:
            self._begin(remembered, self._not_before_ns)
            self._missed = True

    def _first(self, reading: Reading, at_ns: int) -> Look:
        """The first page. Of a process that was still loading when nobody listened there, all counts."""
        since_ns = at_ns if self._refused_ns is None else self._refused_ns - LOADING_NS
        look = self._begin(reading, _started(reading, max(since_ns, self._not_before_ns), at_ns))
        if look.run is None or look.run.started_ns == at_ns:
            return look
        return self._tell(look.run, reading, moved_since_start(reading), at_ns, None)

    def _begin(self, reading: Reading, at_ns: int) -> Look:
        model = self.setup.step_model(reading)
        self._run = self.setup.run(self.target, reading, at_ns, model)
        self._steps = StepMaker(self._splitter, model)
        self._last = _Seen(reading, at_ns)
        return Look(self._run)

    def _restart(self, last: _Seen, reading: Reading, now_ns: int, monotonic_ns: int) -> Look:
        """A new process: what it has done so far counts, in time that is not known to be busy or idle."""
        ended = self._end()
        self._set_clock(now_ns, monotonic_ns)
        at_ns = monotonic_ns + self._ahead_ns
        begin = self._begin(reading, _started(reading, last.at_ns, at_ns))
        why = "the engine was started anew: tokens between the page before and its end are not known"
        assert begin.run is not None
        return self._tell(begin.run, reading, moved_since_start(reading), at_ns, None)._replace(ended=ended, why=why)

    def _go_on(self, run: Run, last: _Seen, reading: Reading, at_ns: int) -> Look:
        if at_ns <= last.at_ns:
            return Look(run)
        missed = self._missed or self._pace.is_late((at_ns - last.at_ns) / S)
        doubt(last.reading, reading)
        moved = moved_between(last.reading, reading)
        return self._tell(run, reading, moved, at_ns, None if missed else last)

    def _tell(self, run: Run, reading: Reading, moved: Moved, at_ns: int, last: _Seen | None) -> Look:
        """The interval up to an instant, as a record and as a pseudo-step; `last` None: it was not watched."""
        steps = self._steps
        assert steps is not None and self._last is not None
        began_ns = self._last.at_ns
        self._take_usage(moved, at_ns)
        told: Told
        if last is None:
            told = steps.unseen(run, reading, moved, at_ns)
        else:
            told = steps.seen(run, last.reading, reading, moved, began_ns, at_ns)
        interval = interval_of(run, told.step.step_seq, began_ns, at_ns, reading, moved, told.why)
        self._run = run._replace(heartbeat_ns=at_ns)
        self._last = _Seen(carried(self._last.reading, reading), at_ns)
        return Look(self._run, interval=interval, step=told.step, cells=told.cells)

    def _take_usage(self, moved: Moved, at_ns: int) -> None:
        self._splitter.take(at_ns)
        if not self._knows_usage:
            for usage in moved_of_tenants(self.engine_id, at_ns, moved.by_tenant):
                self._splitter.add(usage)

    def _end(self) -> Run | None:
        run, self._run = self._run, None
        return None if run is None else run._replace(ended_ns=run.heartbeat_ns)

    def _rest(self, monotonic_ns: int, now_ns: int, why: str) -> Look:
        """The engine sleeps: nothing is known of that time, and nobody is to blame."""
        self._missed = True
        self._pace.may_sleep = True
        self._pace.read(0.0, moved=False)
        state = self._log().see(self._at(now_ns, monotonic_ns), "degraded", why)
        return Look(self._run, state=state, standing="degraded", why=why)

    def _failed(self, monotonic_ns: int, now_ns: int, why: str) -> Look:
        self._missed = True
        self._pace.failed()
        log = self._log()
        state = log.see(self._at(now_ns, monotonic_ns), "down", why)
        return Look(self._run, state=state, standing="down", why=why)

    def _stand(self, look: Look, notes: list[str], reading: Reading) -> Look:
        standing: SourceStanding = "degraded" if look.why or reading.warnings else "up"
        why = "; ".join(notes) or None
        at_ns = look.run.heartbeat_ns if look.run else 0
        return look._replace(state=self._log().see(at_ns, standing, why), standing=standing, why=why, reading=reading)

    def _log(self) -> StandingLog:
        kind = self._server.kind
        if self._standing is None or self._standing.kind != kind:
            self._standing = StandingLog(self._source, kind)
        return self._standing


def _started(reading: Reading, last_ns: int, at_ns: int) -> int:
    """When a new process began: as its page says where that can be, else when it was first seen."""
    told_ns = round((reading.start_s or 0) * S)
    return told_ns if last_ns < told_ns <= at_ns else at_ns
