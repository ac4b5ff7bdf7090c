"""The observer: what the engine tells, for the record and for the clients."""

from __future__ import annotations

from collections.abc import Sequence

from ...events import Request, Run, Share, Sink, Step


class Observer:
    """A `Sink` that passes everything on to another one and keeps the newest for the driver to take."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._steps: list[Step] = []
        self._requests: list[Request] = []

    def run(self, run: Run) -> None:
        """See `Sink`."""
        self._sink.run(run)

    def step(self, step: Step, cells: Sequence[Share]) -> None:
        """See `Sink`."""
        self._sink.step(step, cells)
        self._steps.append(step)

    def request(self, request: Request) -> None:
        """See `Sink`."""
        self._sink.request(request)
        self._requests.append(request)

    def take(self) -> tuple[list[Step], list[Request]]:
        """The steps and the ended requests since the last time."""
        steps, requests = self._steps, self._requests
        self._steps, self._requests = [], []
        return steps, requests
