"""What the vLLM plugin costs the scheduler's thread in a step, beside a hook that lists every request.

    python benchmarks/vllm_hooks.py

No vLLM: the scheduler is a stub whose methods cost nothing, so that what is left is the hooks. CPU time of the calling
thread, the lower quartile of many rounds; the thread that writes JSON is not counted, it runs beside. Limits hold for a
machine on which listing 256 requests takes 135 µs, and move with that, so a busy machine changes nothing.
"""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "plugins" / "vllm"))

from farebox_vllm.guard import Guard  # noqa: E402
from farebox_vllm.hooks import Hooks  # noqa: E402
from farebox_vllm.meter import Meter  # noqa: E402

BATCHES = (1, 8, 64, 256, 1024)
TENANTS = 8
LIMITS_US = {8: 10.0, 256: 60.0}
LISTING_256_US = 135.0
ROUNDS, STEPS = 20, 50


class Stub:
    """A scheduler of one batch that decodes; `turnover` requests of it are replaced in every step."""

    def __init__(self, batch: int, turnover: int, drafts: int) -> None:
        self.cache_config = SimpleNamespace(block_size=16)
        self.parallel_config = SimpleNamespace(pipeline_parallel_size=1)
        self.num_spec_tokens = drafts
        pool = SimpleNamespace(num_gpu_blocks=100_000, get_num_free_blocks=lambda: 5_000)
        self.kv_cache_manager = SimpleNamespace(block_pool=pool)
        self.requests: dict[str, Any] = {}
        self.turnover = turnover
        self.count = 0
        self.new = [self._arrive() for _ in range(batch)]
        self.cached = SimpleNamespace(resumed_req_ids=set())

    def get_request_counts(self) -> tuple[int, int]:
        return len(self.requests), 0

    def schedule(self) -> Any:
        return self.scheduled

    def update_from_output(self, scheduled: Any, made: Any) -> Any:
        return self.made

    def add_request(self, request: Any) -> None: ...

    def _free_request(self, request: Any) -> None: ...

    def _arrive(self) -> Any:
        self.count += 1
        request = SimpleNamespace(
            request_id=f"cmpl-{self.count:032x}", num_prompt_tokens=200, num_tokens=200, num_computed_tokens=0,
            num_output_tokens=0, sampling_params=True, status=SimpleNamespace(name="FINISHED_STOPPED"),
            trace_headers={"x-tenant": f"tenant-{self.count % TENANTS}", "x-tier": "standard"},
        )  # fmt: skip
        self.requests[request.request_id] = request
        return request

    def prepare(self) -> tuple[list[Any], list[Any]]:
        """Make the next batch; gives who comes and who goes before it."""
        gone = [self.requests.pop(name) for name in list(self.requests)[: self.turnover]] if not self.new else []
        come, self.new = self.new + [self._arrive() for _ in gone], []
        rows: dict[str, int] = {}
        drafts: dict[str, list[int]] = {}
        for name, request in self.requests.items():
            rows[name] = request.num_tokens - request.num_computed_tokens
            if request.num_output_tokens and self.num_spec_tokens:
                drafts[name] = [-1] * self.num_spec_tokens
                rows[name] += self.num_spec_tokens
            request.num_computed_tokens += rows[name]
        self.scheduled = SimpleNamespace(
            num_scheduled_tokens=rows,
            total_num_scheduled_tokens=sum(rows.values()),
            preempted_req_ids=set(),
            scheduled_new_reqs=[SimpleNamespace(req_id=request.request_id, num_computed_tokens=0) for request in come],
            scheduled_spec_decode_tokens=drafts,
            scheduled_cached_reqs=self.cached,
        )
        kept = [SimpleNamespace(request_id=name, new_token_ids=[1]) for name in rows]
        self.made = {0: SimpleNamespace(outputs=kept)}
        order = {name: at for at, name in enumerate(rows)}
        self.runner = SimpleNamespace(sampled_token_ids=[[1]] * len(rows), req_id_to_index=order, req_ids=list(order))
        return come, gone

    def move_on(self) -> None:
        for request in self.requests.values():
            request.num_tokens += 1
            request.num_output_tokens += 1
            request.num_computed_tokens = request.num_tokens - 1


class Naive:
    """The hook that one writes first: a line per request and step, made on the scheduler's thread."""

    def __init__(self, scheduler: Stub, put: Callable[[Any], None]) -> None:
        schedule, update = scheduler.schedule, scheduler.update_from_output

        def scheduled() -> Any:
            out = schedule()
            lines = []
            for name, rows in out.num_scheduled_tokens.items():
                request = scheduler.requests[name]
                before = request.num_computed_tokens - rows
                prefill = min(rows, max(0, request.num_prompt_tokens - before))
                lines.append((name, before, prefill, rows - prefill))
            put((time.monotonic_ns(), len(scheduler.requests), lines))
            return out

        def updated(out: Any, made: Any) -> Any:
            now_ns = time.monotonic_ns()
            result = update(out, made)
            put(
                (
                    now_ns,
                    [(each.request_id, len(each.new_token_ids)) for group in result.values() for each in group.outputs],
                )
            )
            return result

        scheduler.schedule, scheduler.update_from_output = scheduled, updated


def microseconds(batch: int, *, naive: bool = False, turnover: int = 0, drafts: int = 0) -> float:
    """CPU time that the hooks take per step."""
    stub = Stub(batch, turnover, drafts)
    queue: deque[Any] = deque(maxlen=1000)
    if naive:
        Naive(stub, queue.append)
    else:
        meter = Meter(stub, queue.append)
        guard = Guard(lambda: None)
        Hooks(stub, meter, guard)
    rounds: list[float] = []
    for _ in range(ROUNDS):
        spent = 0
        for _ in range(STEPS):
            come, gone = stub.prepare()
            began = time.thread_time_ns()
            for request in gone:
                stub._free_request(request)
            for request in come:
                stub.add_request(request)
            out = stub.schedule()
            stub.update_from_output(out, stub.runner)
            spent += time.thread_time_ns() - began
            stub.move_on()
        rounds.append((spent - STEPS * CLOCK_NS) / STEPS / 1000)
    return sorted(rounds)[len(rounds) // 4]


def clock_ns() -> float:
    """What reading the clock twice costs by itself."""
    costs: list[int] = []
    for _ in range(2000):
        began = time.thread_time_ns()
        costs.append(time.thread_time_ns() - began)
    return sorted(costs)[len(costs) // 2]


CLOCK_NS = clock_ns()


def main() -> int:
    """Print a table; 1 if a limit is missed."""
    print(f"µs per step on the scheduler's thread, {TENANTS} tenants")
    print(f"{'batch':>6} {'decoding':>9} {'2 come, 2 go':>13} {'3 drafts each':>14} {'listing all':>12}")
    steady: dict[int, float] = {}
    listing: dict[int, float] = {}
    for batch in BATCHES:
        steady[batch], busy = microseconds(batch), microseconds(batch, turnover=min(2, batch))
        drafting, listing[batch] = microseconds(batch, drafts=3), microseconds(batch, naive=True)
        print(f"{batch:>6} {steady[batch]:>9.1f} {busy:>13.1f} {drafting:>14.1f} {listing[batch]:>12.1f}")
    slowness = listing[256] / LISTING_256_US
    missed = 0
    for batch, limit in LIMITS_US.items():
        cost = steady[batch] / slowness
        print(f"batch {batch}: {cost:.1f} of {limit:.0f} µs, at {LISTING_256_US:.0f} µs for listing 256")
        missed |= cost > limit
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
