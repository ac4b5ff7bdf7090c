"""Buckets: sums of usage without requests, each stretch of time recorded once."""

from __future__ import annotations

from collections import defaultdict
from hashlib import sha256
from typing import TYPE_CHECKING

from ...events import LEDGER, MINUTE_NS, REQUESTS, SHARES, STEPS, Batch, LedgerLine, Progress, Run
from ..unmetered import unmetered_run, usage_lines
from .found import Bucket, Context, Line, RowError

if TYPE_CHECKING:
    from ...storage.store import Store
    from .load import Outcome


class BucketShelf:
    """Gathers the buckets of a file by their time, and records each time as a run of its own.

    The run's name holds a hash of what was used, so the same export changes nothing, and one that says something else
    of the same time is rejected: an export of a time that was not over, or of another project.
    """

    def __init__(self, store: Store, context: Context) -> None:
        self._store, self._context = store, context
        self._lines: defaultdict[tuple[int, int], list[tuple[Line, Bucket]]] = defaultdict(list)

    def put(self, line: Line, bucket: Bucket) -> None:
        """Keep a bucket until all of the file's are there."""
        self._lines[bucket.start_ns, bucket.end_ns].append((line, bucket))

    def empty(self, outcome: Outcome) -> None:
        """Record everything that is not recorded."""
        if not self._lines:
            return
        engine_id = self._context.engine_id
        known = {run.started_ns: run.run_id for run in self._store.runs() if run.engine_id == engine_id}
        for (start_ns, end_ns), held in sorted(self._lines.items()):
            buckets = sorted((bucket for _, bucket in held), key=repr)
            run_id = f"usage-{start_ns // 10**9}-{sha256(repr(buckets).encode()).hexdigest()[:12]}"
            if known.get(start_ns) == run_id:
                outcome.repeated += len(held)
            elif start_ns in known:
                why = (
                    "this time was imported before with other numbers; another project's export needs its own --engine"
                )
                for line, _ in held:
                    outcome.reject(line._replace(thing=RowError(why)))
            else:
                self._append(run_id, start_ns, end_ns, buckets)
                outcome.requests += sum(bucket.requests for bucket in buckets)
                outcome.tokens += sum((b.usage.prompt_tokens or 0) + (b.usage.output_tokens or 0) for b in buckets)
        self._lines.clear()

    def _append(self, run_id: str, start_ns: int, end_ns: int, buckets: list[Bucket]) -> None:
        run = unmetered_run(self._context.engine_id, run_id, self._context.host, start_ns)
        run = run._replace(heartbeat_ns=end_ns, ended_ns=end_ns)
        lines = LEDGER.to_arrow([line for bucket in buckets for line in _ledger_lines(run, bucket)])
        nothing = STEPS.to_arrow([]), SHARES.to_arrow([]), REQUESTS.to_arrow([])
        self._store.append_archive(Batch(run, *nothing, lines, Progress(0, 0, end_ns)))


def _ledger_lines(run: Run, bucket: Bucket) -> list[LedgerLine]:
    """What was used, in the minute in which the bucket begins."""
    key = (bucket.start_ns // MINUTE_NS * MINUTE_NS, bucket.tenant_id, bucket.tier, bucket.model)
    prompt, cached, output = (count or 0 for count in bucket.usage[:3])
    return usage_lines(run, key, bucket.requests, prompt, cached, output)
