"""A scheduler with vLLM's attributes and rules, small enough to be driven by hypothesis: no vLLM, no tokens' values."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from random import Random
from types import SimpleNamespace
from typing import Any


class Status(enum.Enum):
    WAITING = enum.auto()
    RUNNING = enum.auto()
    PREEMPTED = enum.auto()
    FINISHED_STOPPED = enum.auto()
    FINISHED_LENGTH_CAPPED = enum.auto()
    FINISHED_ABORTED = enum.auto()


class FakeRequest:
    def __init__(self, request_id: str, prompt: int, max_tokens: int, *, stop_at: int | None = None, cached: int = 0):
        self.request_id = request_id
        self.num_prompt_tokens = prompt
        self.max_tokens = max_tokens
        self.stop_at = stop_at
        self.cached = min(cached, prompt - 1)
        self.trace_headers: dict[str, str] | None = None
        self.sampling_params: Any = object()
        self.lora_request = None
        self.status = Status.WAITING
        self.num_computed_tokens = self.num_output_tokens = self.num_preemptions = 0
        self.num_output_placeholders = self.in_flight = self.stale = 0

    @property
    def num_tokens(self) -> int:
        return self.num_prompt_tokens + self.num_output_tokens


@dataclass
class Scheduled:
    """As vLLM's SchedulerOutput."""

    num_scheduled_tokens: dict[str, int]
    scheduled_new_reqs: list[Any]
    preempted_req_ids: set[str]
    scheduled_spec_decode_tokens: dict[str, list[int]]
    scheduled_cached_reqs: Any = field(default_factory=lambda: SimpleNamespace(resumed_req_ids=set()))
    samples: dict[str, bool] = field(default_factory=dict)

    @property
    def total_num_scheduled_tokens(self) -> int:
        return sum(self.num_scheduled_tokens.values())


class Pool:
    """Counts blocks; one of them is the null block."""

    def __init__(self, blocks: int) -> None:
        self.num_gpu_blocks = blocks
        self.held: dict[str, int] = {}

    def get_num_free_blocks(self) -> int:
        return self.num_gpu_blocks - 1 - sum(self.held.values())


class FakeScheduler:
    """vLLM V1's rules: running first, then waiting; preempt the newest when blocks run out; `depth` steps in flight."""

    def __init__(self, *, budget=64, seats=8, blocks=64, block_size=4, depth=1, drafts=0, stages=1, seed=0) -> None:
        self.budget, self.seats, self.block_size, self.depth, self.num_spec_tokens = (
            budget, seats, block_size, depth, drafts,
        )  # fmt: skip
        self.random = Random(seed)
        self.cache_config = SimpleNamespace(block_size=block_size)
        self.parallel_config = SimpleNamespace(pipeline_parallel_size=stages)
        self.kv_cache_manager = SimpleNamespace(block_pool=Pool(blocks))
        self.requests: dict[str, FakeRequest] = {}
        self.running: list[FakeRequest] = []
        self.waiting: list[FakeRequest] = []
        self._preempted: set[str] = set()
        self.history: list[object] = []

    def get_request_counts(self) -> tuple[int, int]:
        return len(self.running), len(self.waiting)

    def add_request(self, request: FakeRequest) -> None:
        self.requests[request.request_id] = request
        self.waiting.append(request)

    def finish_requests(self, request_ids: list[str], status: Status = Status.FINISHED_ABORTED) -> None:
        for request in [self.requests[name] for name in request_ids if name in self.requests]:
            (self.running if request.status is Status.RUNNING else self.waiting).remove(request)
            request.status = status
            self._free_request(request)

    def _free_request(self, request: FakeRequest, delay_free_blocks: bool = False) -> str:
        self.kv_cache_manager.block_pool.held.pop(request.request_id, None)
        del self.requests[request.request_id]
        return "kv transfer parameters"

    def schedule(self, throttle_prefills: bool = False) -> Scheduled:
        out = Scheduled({}, [], set(), {})
        budget = self.budget
        for request in list(self.running):
            if request in self.running:
                budget -= self._go_on(request, budget, out)
        while self.waiting and budget > 0 and len(self.running) < self.seats and not self._preempted:
            rows = self._admit(self.waiting[0], budget, out)
            if not rows:
                break
            budget -= rows
        for name, rows in out.num_scheduled_tokens.items():
            self._count(self.requests[name], rows, out)
        out.preempted_req_ids, self._preempted = self._preempted, set()
        self.history.append(dict(out.num_scheduled_tokens))
        return out

    def _go_on(self, request: FakeRequest, budget: int, out: Scheduled) -> int:
        placeholders = request.num_output_placeholders
        limit = request.num_prompt_tokens + request.max_tokens
        if budget <= 0 or (placeholders and request.num_computed_tokens + 2 - placeholders >= limit):
            return 0
        drafts = self.num_spec_tokens if request.num_output_tokens or placeholders else 0
        missing = request.num_tokens + placeholders - request.num_computed_tokens
        rows = min(missing + drafts, budget)
        if missing <= 0:
            return 0
        while not self._hold(request, request.num_computed_tokens + rows):
            victim = self.running.pop()
            self._preempt(victim)
            if victim is request:
                return 0
        out.num_scheduled_tokens[request.request_id] = rows
        if rows > missing:
            out.scheduled_spec_decode_tokens[request.request_id] = [-1] * (rows - missing)
        return rows

    def _admit(self, request: FakeRequest, budget: int, out: Scheduled) -> int:
        hits = request.cached if request.num_computed_tokens == 0 else 0
        rows = min(budget, request.num_tokens - hits)
        if not self._hold(request, hits + rows):
            return 0
        self.waiting.pop(0)
        self.running.append(request)
        if request.status is Status.WAITING:
            out.scheduled_new_reqs.append(SimpleNamespace(req_id=request.request_id, num_computed_tokens=hits))
        request.status = Status.RUNNING
        request.num_computed_tokens = hits
        out.num_scheduled_tokens[request.request_id] = rows
        return rows

    def _hold(self, request: FakeRequest, tokens: int) -> bool:
        pool = self.kv_cache_manager.block_pool
        more = -(-tokens // self.block_size) - pool.held.get(request.request_id, 0)
        if more > pool.get_num_free_blocks():
            return False
        pool.held[request.request_id] = pool.held.get(request.request_id, 0) + max(0, more)
        return True

    def _preempt(self, request: FakeRequest) -> None:
        self.kv_cache_manager.block_pool.held.pop(request.request_id, None)
        request.status = Status.PREEMPTED
        request.num_computed_tokens = request.num_output_placeholders = 0
        request.stale = request.in_flight
        request.num_preemptions += 1
        self.waiting.insert(0, request)
        self._preempted.add(request.request_id)

    def _count(self, request: FakeRequest, rows: int, out: Scheduled) -> None:
        request.num_computed_tokens += rows
        request.in_flight += rows
        samples = request.num_computed_tokens >= request.num_tokens + request.num_output_placeholders
        out.samples[request.request_id] = samples
        if samples and self.depth > 1:
            drafts = out.scheduled_spec_decode_tokens.get(request.request_id, ())
            request.num_output_placeholders += 1 + len(drafts)

    def run_model(self, out: Scheduled) -> Any:
        """What the GPU makes of a batch: a token for whoever has caught up, and some of its drafts."""
        tokens = [
            [7] * (1 + self.random.randint(0, len(out.scheduled_spec_decode_tokens.get(name, ())))) if samples else []
            for name, samples in out.samples.items()
        ]
        order = {name: at for at, name in enumerate(out.num_scheduled_tokens)}
        return SimpleNamespace(
            sampled_token_ids=[tokens[list(out.samples).index(name)] for name in order],
            req_id_to_index=order,
            req_ids=list(order),
        )

    def update_from_output(self, scheduler_output: Scheduled, model_runner_output: Any) -> dict[int, Any]:
        outputs: list[Any] = []
        for name, rows in scheduler_output.num_scheduled_tokens.items():
            request = self.requests.get(name)
            if request is None:
                continue
            request.in_flight -= rows
            is_stale = request.stale > 0
            request.stale -= rows if is_stale else 0
            tokens = model_runner_output.sampled_token_ids[model_runner_output.req_id_to_index[name]]
            drafts = scheduler_output.scheduled_spec_decode_tokens.get(name)
            if drafts and tokens and not is_stale:
                rejected = len(drafts) - (len(tokens) - 1)
                request.num_computed_tokens -= rejected
                request.num_output_placeholders -= rejected if request.num_output_placeholders else 0
            if tokens:
                stopped = self._append(request, tokens, is_stale)
                outputs.append(SimpleNamespace(request_id=name, new_token_ids=tokens))
                if stopped:
                    (self.running if request.status is Status.RUNNING else self.waiting).remove(request)
                    request.status = stopped
                    self._free_request(request)
        self.history.append([(output.request_id, list(output.new_token_ids)) for output in outputs])
        return {0: SimpleNamespace(outputs=outputs)} if outputs else {}

    def _append(self, request: FakeRequest, tokens: list[int], is_stale: bool) -> Status | None:
        for count, _ in enumerate(list(tokens), 1):
            request.num_output_tokens += 1
            stopped = (
                Status.FINISHED_STOPPED if request.num_output_tokens == request.stop_at
                else Status.FINISHED_LENGTH_CAPPED if request.num_output_tokens >= request.max_tokens else None
            )  # fmt: skip
            if stopped:
                del tokens[count:]
                break
        if self.depth > 1 and not is_stale:
            request.num_output_placeholders -= len(tokens)
        return stopped
