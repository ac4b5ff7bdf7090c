"""Loading: what was found in a file goes into a store, once, however often it is imported."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

from ...events import GPU_SAMPLES, REQUESTS, SHARES, STEPS, Batch, GpuSample, Progress, Request
from ..unmetered import request_lines, unmetered_run
from ..usage.usage import Usage
from .buckets import BucketShelf
from .found import Bucket, Context, Line, RowError, Saved

if TYPE_CHECKING:
    import pyarrow as pa

    from ...storage.store import Store

DAY_NS = 86_400 * 10**9
PIECE = 100_000
"""Things that are taken to the store at a time."""
KEPT_REJECTS = 100_000
Counts = tuple[int | None, int | None]
"""A request's prompt and output tokens."""


@dataclass
class Outcome:
    """What became of one file."""

    requests: int = 0
    tokens: int = 0
    samples: int = 0
    repeated: int = 0
    """Lines that the store, or the file above them, has already."""
    saved_requests: int = 0
    saved_tokens: int = 0
    """Answers from a cache before the engine: no work."""
    odd: int = 0
    """Requests with more cached than prompt tokens, kept as they were told."""
    rejected: int = 0
    rejects: list[Line] = field(default_factory=list)
    """The first of them, each with its reason."""

    def reject(self, line: Line) -> None:
        """Count a line that is of no use."""
        self.rejected += 1
        if len(self.rejects) < KEPT_REJECTS:
            self.rejects.append(line)


class Loader:
    """Takes the lines of files into one store."""

    def __init__(self, store: Store, context: Context) -> None:
        self._store, self._context = store, context
        self._seen: dict[str, Counts] = {}

    def load(self, lines: Iterable[Line], on_line: Callable[[int], None]) -> Outcome:
        """Take all lines of one file, and count those that are recorded; `on_line` is told how many were looked at."""
        outcome = Outcome()
        shelf = BucketShelf(self._store, self._context)
        requests: list[Line] = []
        samples: list[GpuSample] = []
        for done, line in enumerate(lines, start=1):
            match line.thing:
                case RowError():
                    outcome.reject(line)
                case Saved(tokens):
                    outcome.saved_requests += 1
                    outcome.saved_tokens += tokens
                case Bucket():
                    shelf.put(line, line.thing)
                case Request():
                    requests.append(line)
                case GpuSample():
                    samples.append(line.thing)
            if len(requests) + len(samples) >= PIECE:
                self._take(requests, samples, outcome)
                requests, samples = [], []
            on_line(done)
        self._take(requests, samples, outcome)
        shelf.empty(outcome)
        return outcome

    def _take(self, requests: list[Line], samples: list[GpuSample], outcome: Outcome) -> None:
        if samples:
            self._take_samples(samples, outcome)
        if requests:
            self._take_requests(requests, outcome)

    def _take_samples(self, samples: list[GpuSample], outcome: Outcome) -> None:
        window = min(each.at_ns for each in samples), max(each.at_ns for each in samples) + 1
        rows = self._store.read(GPU_SAMPLES, ["host", "gpu_uuid", "at_ns"], *window)
        known = {tuple(row.values()) for row in rows.to_pylist()}
        new: dict[tuple[str, str, int], GpuSample] = {}
        for each in samples:
            if each[:3] not in known:
                new.setdefault(each[:3], each)
        outcome.samples += len(new)
        outcome.repeated += len(samples) - len(new)
        if new:
            self._store.append_samples(GPU_SAMPLES, GPU_SAMPLES.to_arrow(new.values()))

    def _take_requests(self, lines: list[Line], outcome: Outcome) -> None:
        by_day: defaultdict[int, list[Request]] = defaultdict(list)
        for request in self._new(lines, outcome):
            by_day[(request.finished_ns - 1) // DAY_NS].append(request)
            outcome.requests += 1
            outcome.tokens += (request.prompt_tokens or 0) + (request.output_tokens or 0)
            outcome.odd += Usage(request.prompt_tokens, request.cached_tokens).is_odd
        for day, requests in sorted(by_day.items()):
            self._append(day, requests)

    def _new(self, lines: list[Line], outcome: Outcome) -> Iterator[Request]:
        """The requests that are not recorded; one that is recorded with other tokens is rejected."""
        recorded = self._recorded([line.thing.request_id for line in lines if isinstance(line.thing, Request)])
        for line in lines:
            request = line.thing
            if not isinstance(request, Request):
                continue
            before = recorded.get(request.request_id) or self._seen.get(request.request_id)
            if before is None:
                self._seen[request.request_id] = _counts(request)
                yield request
            elif before == _counts(request):
                outcome.repeated += 1
            else:
                outcome.reject(line._replace(thing=RowError("it was imported before with other tokens")))

    def _recorded(self, told: list[str]) -> dict[str, Counts]:
        """Tokens of those requests that the engine had before this file, whatever their time.

        A file without times is as old as its last change, so a log that grew tells the same request at another time.
        """
        import pyarrow as pa
        import pyarrow.compute as pc

        rows = self._known.filter(pc.is_in(self._known["request_id"], pa.array(told, pa.string())))
        ids, prompts, outputs = (cast("list[Any]", column.to_pylist()) for column in rows.columns)
        return dict(zip(ids, zip(prompts, outputs, strict=True), strict=True))

    @cached_property
    def _known(self) -> pa.Table:
        """Ids and tokens of the engine's requests before this file."""
        columns = ["request_id", "prompt_tokens", "output_tokens"]
        return self._store.read(REQUESTS, columns, engine_id=self._context.engine_id)

    def _append(self, day: int, requests: list[Request]) -> None:
        """Record requests of one UTC day, which is a run without GPUs."""
        start_ns, end_ns = day * DAY_NS, (day + 1) * DAY_NS
        run_id = f"import-{start_ns // 10**9}"
        run = unmetered_run(self._context.engine_id, run_id, self._context.host, start_ns)
        run = run._replace(heartbeat_ns=end_ns, ended_ns=end_ns)
        known = self._store.progress(run.engine_id, run_id) or Progress(0, 0, start_ns)
        named = [request._replace(run_id=run_id) for request in requests]
        progress = Progress(0, known.requests + len(named), end_ns)
        nothing = STEPS.to_arrow([]), SHARES.to_arrow([])
        batch = Batch(run, *nothing, REQUESTS.to_arrow(named), request_lines(run, named), progress)
        self._store.append_archive(batch)


def _counts(request: Request) -> Counts:
    return request.prompt_tokens, request.output_tokens
