"""What an engine is made of: its hardware, its limits and its scheduling mode."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, Self, get_args

from ..events import Run, Tier
from ..roofline import Replica
from ..roofline.step_model import StepModel
from .args import args_json
from .arrival import Arrival
from .speculation import PER_MILLION, Speculation

Mode = Literal["continuous", "static", "none"]
MODES: tuple[Mode, ...] = get_args(Mode)
BLOCK_SIZE = 16
Policy = Literal["fcfs", "priority"]
TIER_RANKS: dict[Tier, int] = {"fast": -1, "standard": 0, "batch": 1}
POLICIES: tuple[Policy, ...] = get_args(Policy)


@dataclass(frozen=True, kw_only=True)
class EngineConfig:
    """One replica of a model and how it schedules. The limits carry vLLM's names.

    Raises:
        ValueError: a limit under which no request could ever run.
    """

    engine_id: str
    run_id: str
    host: str
    gpu_type: str
    gpus: int
    model: str
    weights: str
    kv_blocks: int
    """Blocks of the KV cache; one of them is the null block, which no request gets."""
    block_bytes: int
    """Bytes of one block over all GPUs."""
    step_model: StepModel
    mode: Mode = "continuous"
    scheduling_policy: Policy = "fcfs"
    """fcfs: first come, first served within a tier; the newest batch rider is put off first. priority: by rank."""
    max_num_seqs: int = 256
    """Seats: the most sequences in one step."""
    max_num_batched_tokens: int = 8192
    """The most token rows in one step."""
    block_size: int = BLOCK_SIZE
    """Tokens in one KV block."""
    enable_prefix_caching: bool = False
    """Whether computed blocks are found again by the ids of their prefix."""
    prefix_block_tokens: int = 512
    """Tokens that one prefix id stands for, a whole number of KV blocks."""
    speculation: Speculation | None = None
    """Speculative decoding; None: one row and one token per sequence and step."""
    batch_wait_ms: int = 50
    """Mode static: how long the first waiting request waits for company."""
    fast_cap: int | None = None
    """While a fast request rides, nobody boards beyond this many sequences; None: no cap."""
    async_scheduling: bool = False
    """Schedule a step while the one before it runs, as vLLM does on CUDA; see `PipelinedEngine`."""
    cold_start_ns: int = 0
    """How much longer the engine's first step takes: loading kernels, filling caches."""
    gpu_uuids: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise ValueError(f"mode {self.mode!r} is not one of {', '.join(MODES)}")
        if self.scheduling_policy not in POLICIES:
            raise ValueError(f"scheduling_policy {self.scheduling_policy!r} is not one of {', '.join(POLICIES)}")
        floors = {"gpus": 1, "max_num_seqs": 1, "max_num_batched_tokens": 1, "block_size": 1, "kv_blocks": 2}
        for name, floor in (floors | {"block_bytes": 1, "batch_wait_ms": 0, "cold_start_ns": 0}).items():
            if getattr(self, name) < floor:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be at least {floor}")
        self._check_pipeline()
        if self.fast_cap is not None and self.fast_cap < 1:
            raise ValueError(f"fast_cap is {self.fast_cap}; it must be at least 1")
        if self.fast_cap is not None and self.mode != "continuous":
            raise ValueError(f"fast_cap needs mode continuous, not {self.mode}")
        if (speculation := self.speculation) is not None:
            if speculation.num_speculative_tokens < 1:
                raise ValueError("speculation needs at least 1 drafted token per step")
            if not 0 <= speculation.accepted_per_million <= PER_MILLION:
                raise ValueError("the acceptance rate of drafted tokens must be between 0 and 1")
        if self.enable_prefix_caching and (self.prefix_block_tokens < 1 or self.prefix_block_tokens % self.block_size):
            tokens = self.prefix_block_tokens
            raise ValueError(f"prefix_block_tokens is {tokens}; it must be a multiple of block_size {self.block_size}")

    def _check_pipeline(self) -> None:
        if self.async_scheduling and self.mode != "continuous":
            raise ValueError(f"async_scheduling needs mode continuous, not {self.mode}")
        if self.async_scheduling and self.speculation is not None:
            raise ValueError("async_scheduling does not go with speculation: what is accepted is not known ahead")

    @classmethod
    def of(
        cls,
        replica: Replica,
        draft: Replica | None = None,
        *,
        engine_id: str,
        run_id: str = "",
        host: str = "",
        **options: Any,
    ) -> Self:
        """A configuration of `replica` with the KV blocks that fit beside its weights; `options` are limits and mode.

        `draft` is the model that drafts for the `speculation` in the options, on the same GPUs.

        Raises:
            SpecError: the model does not fit.
            ValueError: a limit under which no request could ever run.
        """
        if options.get("mode") == "none":
            options["max_num_seqs"] = 1
        if draft is not None:
            options["speculation"] = replace(options["speculation"], draft=draft.step_model())
        return cls(
            engine_id=engine_id,
            run_id=run_id,
            host=host,
            gpu_type=replica.gpu.name,
            gpus=replica.tp,
            model=replica.model.name,
            weights=replica.weights,
            kv_blocks=_kv_blocks(replica, draft, options.get("max_num_batched_tokens", cls.max_num_batched_tokens)),
            block_bytes=replica.block_bytes(BLOCK_SIZE),
            step_model=replica.step_model(),
            **options,
        )

    def rank(self, arrival: Arrival) -> int:
        """Where a request queues: lower ranks first. The tier decides, unless the policy minds a priority."""
        if self.scheduling_policy == "priority" and arrival.priority is not None:
            return arrival.priority
        return TIER_RANKS[arrival.tier]

    @property
    def seats(self) -> int:
        """The most sequences on board: every one of them needs a row in each step."""
        return 1 if self.mode == "none" else min(self.max_num_seqs, self.max_num_batched_tokens)

    @property
    def lookahead(self) -> int:
        """Tokens beyond its newest one that a sequence needs KV slots for: what is drafted."""
        return 0 if self.speculation is None else self.speculation.num_speculative_tokens

    @property
    def usable_blocks(self) -> int:
        """Blocks that requests can get."""
        return self.kv_blocks - 1

    def run(self, started_ns: int, load_ns: int = 0) -> Run:
        """The run record of an engine with this configuration that starts at `started_ns` and loads for `load_ns`."""
        return Run(
            engine_id=self.engine_id,
            run_id=self.run_id,
            host=self.host,
            gpu_type=self.gpu_type,
            gpu_uuids=self.gpu_uuids,
            gpus=self.gpus,
            model=self.model,
            weights=self.weights,
            mode=self.mode,
            max_num_seqs=self.max_num_seqs,
            max_num_batched_tokens=self.max_num_batched_tokens,
            block_bytes=self.block_bytes,
            kv_blocks=self.kv_blocks,
            step_model=self.step_model.to_json(),
            clock="virtual",
            started_ns=started_ns,
            load_ns=load_ns,
            heartbeat_ns=started_ns,
            ended_ns=None,
            engine_args=args_json(self),
        )


def _kv_blocks(replica: Replica, draft: Replica | None, max_num_batched_tokens: int) -> int:
    """KV blocks that fit; a draft model takes room for its weights, and for its own KV of every block."""
    blocks = replica.kv_blocks(BLOCK_SIZE, max_num_batched_tokens)
    if draft is None:
        return blocks
    block_bytes = replica.block_bytes(BLOCK_SIZE)
    room = blocks * block_bytes - draft.model.resident_bytes(draft.weights)
    return room // (block_bytes + draft.block_bytes(BLOCK_SIZE))
