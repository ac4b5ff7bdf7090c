"""Drives the fake scheduler as EngineCore does, and lists naively, request by request, what every step held."""

from __future__ import annotations

from collections import Counter, deque
from typing import Any, NamedTuple

from farebox_vllm.clock import Clock
from farebox_vllm.guard import Guard
from farebox_vllm.hooks import Hooks
from farebox_vllm.meter import Meter
from farebox_vllm.records import Records
from farebox_vllm.run import Names
from vllm_fake import FakeRequest, FakeScheduler


class Ask(NamedTuple):
    """A request to be, and what is done to it: it comes before step `at`, and is aborted before step `abort_at`."""

    at: int
    tenant: str
    prompt: int
    max_tokens: int
    stop_at: int | None = None
    cached: int = 0
    abort_at: int | None = None


class Ticking:
    """A clock that moves by odd amounts whenever it is read."""

    def __init__(self) -> None:
        self.now_ns = 10**12
        self.reads = 0

    def __call__(self) -> int:
        self.reads += 1
        self.now_ns += 1000 + 37 * (self.reads % 11)
        return self.now_ns


class Metered:
    """A metered run of the fake scheduler: `events` are what the spool would get, `naive` the same, counted by hand."""

    def __init__(self, asks: list[Ask], tier: str = "standard", **options: Any) -> None:
        self.tier = tier
        self.scheduler = FakeScheduler(**options)
        self.clock = Ticking()
        self.queued: list[Any] = []
        self.meter = Meter(self.scheduler, self.queued.append, self.clock)
        self.began_ns = self.meter.ended_ns
        self.guard = Guard(self.stop)
        self.hooks = Hooks(self.scheduler, self.meter, self.guard)
        self.asks = asks
        self.naive: list[Counter[tuple[str, str, str]]] = []
        self.high_water: dict[str, int] = {}
        self.ridden: set[str] = set()
        self.tenants = {f"r{number}": ask.tenant for number, ask in enumerate(asks)}
        self.in_flight: deque[tuple[Any, Any]] = deque()

    def stop(self) -> None:
        """What the guard does when it has had enough."""
        self.hooks.remove()

    def run(self, most_steps: int = 3000) -> Metered:
        """Until everybody has come and gone."""
        for step in range(most_steps):
            self.come(step)
            self.step()
            if not self.in_flight and not self.scheduler.requests and step > max(ask.at for ask in self.asks):
                return self
        raise AssertionError("the fake scheduler hangs")

    def step(self) -> None:
        """What EngineCore does once in its loop, with `depth` batches in its queue."""
        out = self.scheduler.schedule() if self.scheduler.requests else None
        is_empty = out is None or not out.num_scheduled_tokens
        if not is_empty:
            self.in_flight.append((out, self._list(out)))
        if self.in_flight and (len(self.in_flight) == self.scheduler.depth or is_empty):
            self._update(*self.in_flight.popleft())

    def come(self, step: int) -> None:
        """Those who come or are aborted before a step."""
        for number, ask in enumerate(self.asks):
            name = f"r{number}"
            if ask.at == step:
                request = FakeRequest(name, ask.prompt, ask.max_tokens, stop_at=ask.stop_at, cached=ask.cached)
                request.trace_headers = {"x-tenant": ask.tenant, "x-tier": self.tier, "traceparent": "00-1"}
                self.scheduler.add_request(request)
            if ask.abort_at == step and name in self.scheduler.requests:
                self.scheduler.finish_requests([name])

    def _list(self, out: Any) -> Counter[tuple[str, str, str]]:
        """Count the cells of a batch, a row at a time."""
        cells: Counter[tuple[str, str, str]] = Counter()
        for name, rows in out.num_scheduled_tokens.items():
            request = self.scheduler.requests[name]
            before, tenant = request.num_computed_tokens - rows, self.tenants[name]
            if name not in self.ridden:
                cells[tenant, "any", "cached_tokens"] += before
                self.ridden.add(name)
            for position in range(before, before + rows):
                is_again = position < self.high_water.get(name, 0)
                phase = "again" if is_again else "prefill" if position < request.num_prompt_tokens else "decode"
                cells[tenant, phase, "rows"] += 1
                cells[tenant, "any", "attended"] += position + 1
            cells[tenant, "any", "seqs"] += 1
            self.high_water[name] = max(self.high_water.get(name, 0), before + rows)
        return cells

    def _update(self, out: Any, cells: Counter[tuple[str, str, str]]) -> None:
        made = self.scheduler.run_model(out)
        self._take_back(out, made)
        for each in self.scheduler.update_from_output(out, made).values():
            for output in each.outputs:
                cells[self.tenants[output.request_id], "any", "output_tokens"] += len(output.new_token_ids)
        self.naive.append(cells)

    def _take_back(self, out: Any, made: Any) -> None:
        """Rows of rejected drafts were computed in vain: their positions count as never computed."""
        for name, drafts in out.scheduled_spec_decode_tokens.items():
            tokens = made.sampled_token_ids[made.req_id_to_index[name]]
            if tokens and name in self.scheduler.requests:
                self.high_water[name] -= len(drafts) - (len(tokens) - 1)


def sums(event: dict[str, Any]) -> Counter[tuple[str, str, str]]:
    """The cells of a step event in the naive list's terms."""
    cells: Counter[tuple[str, str, str]] = Counter()
    for cell in event["cells"]:
        phase = "again" if cell["account"] == "overhead" else cell["phase"]
        cells[cell["tenant_id"], phase, "rows"] += cell["rows"]
        for name in ("seqs", "attended", "cached_tokens", "output_tokens"):
            cells[cell["tenant_id"], "any", name] += cell[name]
    return +cells


def tell(metered: Metered, kind: str) -> list[dict[str, Any]]:
    """The events of a kind that the spool would get."""
    pool = metered.scheduler.kv_cache_manager.block_pool
    records = Records(Names("engine", "run", "tiny"), Clock(), 1, pool.num_gpu_blocks - 1)
    return [event for event in map(records.event, metered.queued) if kind in event]
