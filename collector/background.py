"""A recorder on a thread of its own, for an engine that must not wait for a disk."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial

from ..events import Request, Run, Share, Sink, Step

Telling = Callable[[], None]


class BackgroundRecorder:
    """A `Sink` that hands what it was told to another one on a thread: one batch at a time, the next while it waits.

    `record` is called on that thread after each batch, to store it. What goes wrong there is raised by the next
    `beat`, or by `close`.
    """

    def __init__(self, sink: Sink, record: Callable[[], None]) -> None:
        self._sink = sink
        self._record = record
        self._told: list[Telling] = []
        self._thread = ThreadPoolExecutor(1, "farebox-recorder")
        self._batch: Future[None] | None = None

    def run(self, run: Run) -> None:
        """See `Sink`."""
        self._told.append(partial(self._sink.run, run))

    def step(self, step: Step, cells: Sequence[Share]) -> None:
        """See `Sink`."""
        self._told.append(partial(self._sink.step, step, cells))

    def request(self, request: Request) -> None:
        """See `Sink`."""
        self._told.append(partial(self._sink.request, request))

    def beat(self) -> None:
        """Start to record everything told so far, unless the batch before is still on its way."""
        if self._batch is not None:
            if not self._batch.done():
                return
            self._batch.result()
        self._batch = self._hand_over()

    def close(self) -> None:
        """Record the rest and wait until it is stored."""
        try:
            if self._batch is not None:
                self._batch.result()
            self._hand_over().result()
        finally:
            self._thread.shutdown()

    def _hand_over(self) -> Future[None]:
        told, self._told = self._told, []
        return self._thread.submit(self._work, told)

    def _work(self, told: list[Telling]) -> None:
        for tell in told:
            tell()
        self._record()
