"""Requests of a spool that tells no steps: counted under a run without GPUs, one per engine and writer."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ...events import REQUESTS, SHARES, STEPS, Batch, Progress, Request
from ..unmetered import request_lines, unmetered_run
from .repeats import recorded_requests

if TYPE_CHECKING:
    from ...storage.store import Store


class RequestsOnly:
    """Requests since the last batch, by run and id. A run that they do not name has the writer's name."""

    def __init__(self, store: Store, writer: str) -> None:
        self._store = store
        self._writer = writer
        self._told: dict[tuple[str, str], dict[str, Request]] = {}
        self._counts_tokens: dict[str, bool] = {}

    def take(self, request: Request, *, tokens: bool) -> bool:
        """Take a request, whose tokens count unless another source counts them; false when it was told just now."""
        request = self.named(request)
        told = self._told.setdefault((request.engine_id, request.run_id), {})
        self._counts_tokens[request.engine_id] = tokens
        is_new = request.request_id not in told
        told.setdefault(request.request_id, request)
        return is_new

    def named(self, request: Request) -> Request:
        """The request under the name of its run."""
        return request if request.run_id else request._replace(run_id=self._writer)

    def take_repeated(self, now_ns: int) -> list[tuple[Request, Request | None]]:
        """Take out the requests that are recorded, each beside its record."""
        found: list[tuple[Request, Request | None]] = []
        for told in self._told.values():
            known = recorded_requests(self._store, told, now_ns)
            found += [(told.pop(request_id), request) for request_id, request in known.items()]
        return found

    def batches(self) -> Iterator[Batch]:
        """One batch for each engine that requests were for."""
        told, self._told = self._told, {}
        for (engine_id, run_id), by_id in told.items():
            if by_id:
                yield self._batch(engine_id, run_id, list(by_id.values()))

    def _batch(self, engine_id: str, run_id: str, requests: list[Request]) -> Batch:
        progress = self._store.progress(engine_id, run_id) or Progress(0, 0, 0)
        first_ns = min(request.arrived_ns for request in requests)
        run = self._store.run(engine_id, run_id)
        run = run or unmetered_run(engine_id, run_id, socket.gethostname(), first_ns)
        covered_ns = max(progress.covered_ns, *(request.finished_ns for request in requests))
        return Batch(
            run._replace(heartbeat_ns=covered_ns),
            STEPS.to_arrow([]),
            SHARES.to_arrow([]),
            REQUESTS.to_arrow(requests),
            request_lines(run, requests, tokens=self._counts_tokens[engine_id]),
            Progress(0, progress.requests + len(requests), covered_ns),
        )
