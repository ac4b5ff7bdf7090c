"""The books of one run that a spool tells: its events since the last batch, checked so that booking cannot fail."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from ...costing.ledger import Bookkeeper
from ...costing.shares import split_steps
from ...events import REQUESTS, SHARES, STEPS, Batch, Progress, Request, Run, Share, Step
from ...roofline import StepModel
from .attention import priced, with_step_model
from .told import ForeignEventError, StepTold

if TYPE_CHECKING:
    from ...storage.store import Store


class RunBooks:
    """Takes a run's events in the order told; refuses with ForeignEventError what would not add up."""

    def __init__(self, run: Run, progress: Progress | None) -> None:
        self.run = with_step_model(run)
        self._progress = progress or Progress(0, 0, run.started_ns)
        self._books = Bookkeeper(self.run, self._progress.covered_ns, self._progress.steps)
        self._constants = StepModel.from_json(self.run.step_model) if self.run.step_model else None
        self._steps: list[Step] = []
        self._shares: list[Share] = []
        self._requests: dict[str, Request] = {}
        self._ledger: list[pa.Table] = []
        self._done: list[tuple[pa.Table, pa.Table]] = []
        self._until_ns = self._progress.covered_ns
        self._lost = False
        self._is_changed = progress is None

    @classmethod
    def recorded(cls, store: Store, engine_id: str, run_id: str) -> RunBooks | None:
        """The books of a run that the store has; None when it has no such run."""
        run = store.run(engine_id, run_id)
        return None if run is None else cls(run, store.progress(engine_id, run_id))

    @property
    def next_seq(self) -> int:
        """The step_seq that comes next; smaller ones were told before."""
        return self._steps[-1].step_seq + 1 if self._steps else self._books.steps

    def tell(self, run: Run) -> None:
        """Take a run's newest record; what the books were begun with stays."""
        same = ("host", "gpu_type", "gpus", "started_ns", "load_ns")
        changed = [name for name in same if getattr(run, name) != getattr(self.run, name)]
        if changed:
            raise ForeignEventError(f"{', '.join(changed)} of a run cannot change")
        if run.ended_ns is not None and run.ended_ns < self._until_ns:
            raise ForeignEventError(f"the run ends before {self._until_ns}, up to where it was told")
        if self._has_ended:
            return
        step_model = run.step_model or self.run.step_model
        run = run._replace(step_model=step_model, heartbeat_ns=self.run.heartbeat_ns)
        if run != self.run:
            self.run, self._is_changed = run, True
        if run.ended_ns is not None:
            self._move(run.ended_ns)

    def beat(self, at_ns: int) -> None:
        """Take time up to an instant as told; one that is past changes nothing."""
        if not self._has_ended and at_ns > self._until_ns:
            self._move(at_ns)

    def step(self, told: StepTold) -> None:
        """Take the next step."""
        step = told.step
        if step.gpus != self.run.gpus:
            raise ForeignEventError(f"it ran on {step.gpus} GPUs, its run has {self.run.gpus}")
        if step.started_ns < self._until_ns:
            raise ForeignEventError(f"it begins {self._until_ns - step.started_ns} ns before the end of what was told")
        if self._has_ended:
            raise ForeignEventError("its run has ended")
        step, shares = priced(told, self._constants)
        self._steps.append(step)
        self._shares.extend(shares)
        self._until_ns, self._lost = step.ended_ns, False

    def request(self, request: Request) -> bool:
        """Take a request; false when it was told since the last batch already."""
        is_new = request.request_id not in self._requests
        self._requests.setdefault(request.request_id, request)
        return is_new

    def lose(self) -> None:
        """The writer lost events here: if no step number tells how long that was, the time until the next beat is."""
        self._lost = True

    def take_repeated(self, known: Sequence[str]) -> list[Request]:
        """Take out the requests with these ids, which are recorded."""
        return [self._requests.pop(request_id) for request_id in known if request_id in self._requests]

    @property
    def requests(self) -> Mapping[str, Request]:
        """Requests since the last batch, by id."""
        return self._requests

    def batch(self) -> Batch | None:
        """All since the last batch, booked; None when there is nothing new."""
        requests = REQUESTS.to_arrow(self._requests.values())
        self._book(requests)
        steps, shares, ledger = (pa.concat_tables(tables) for tables in (*zip(*self._done, strict=True), self._ledger))
        progress = Progress(self._books.steps, self._progress.requests + requests.num_rows, self._books.covered_ns)
        run = self.run._replace(heartbeat_ns=self._books.covered_ns)
        if progress == self._progress and not self._is_changed:
            self._clear()
            return None
        batch = Batch(run, steps, shares, requests, ledger, progress)
        self._progress, self.run, self._is_changed = progress, run, False
        self._clear()
        return batch

    def _clear(self) -> None:
        self._done, self._ledger, self._requests = [], [], {}

    @property
    def _has_ended(self) -> bool:
        return self.run.ended_ns is not None

    def _move(self, to_ns: int) -> None:
        if self._lost:
            self._book(REQUESTS.to_arrow([]))
            self._ledger.append(self._books.skip(to_ns))
            self._lost = False
        self._until_ns = to_ns

    def _book(self, requests: pa.Table) -> None:
        """Split and book what was told up to here."""
        steps, shares = split_steps(
            STEPS.to_arrow(self._steps), SHARES.to_arrow(self._shares), self._constants, measured=True
        )
        self._ledger.append(self._books.book(steps, shares, requests, self._until_ns))
        self._done.append((steps, shares))
        self._steps, self._shares = [], []
