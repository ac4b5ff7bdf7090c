"""The engine that a recorded run is replayed through."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from ..engine.config import EngineConfig
from ..errors import InputError
from ..roofline import Gpu, Model, Replica, SpecError, gpu, model
from .engine_args import EngineArgs


def replica_of(args: EngineArgs, gpu_name: str | None = None, model_name: str | None = None) -> Replica:
    """The replica that served; names given here go before those recorded.

    Raises:
        InputError: nothing says which GPU or model it was, or one is not known.
    """
    devices = (gpu_name,) if gpu_name else args.device_names
    served = model_name or args.model
    if not devices:
        raise InputError("the engine arguments do not say which GPU it was: name it with --gpu")
    if served is None:
        raise InputError("the engine arguments do not say which model it was: name it with --model")
    whole = model(served)
    return Replica(
        _first_known(devices), _rank_of(whole, args.data_parallel_size), args.weights, args.tensor_parallel_size
    )


def _first_known(devices: Sequence[str]) -> Gpu:
    """The first name that is one of a known GPU; the last one's complaint if none is."""
    for name in devices[:-1]:
        with suppress(SpecError):
            return gpu(name)
    return gpu(devices[-1])


def _rank_of(whole: Model, ranks: int) -> Model:
    """What one of several data-parallel ranks computes: all ranks' rows with its part of the experts.

    With as many rows on every rank, that is as much as its own rows with as many experts per row.
    """
    if ranks == 1:
        return whole
    if whole.experts is None or whole.experts.count % ranks:
        raise InputError(
            f"data_parallel_size {ranks}: ranks of {whole.name} share no experts, so each is a run of its own"
        )
    return replace(whole, experts=replace(whole.experts, count=whole.experts.count // ranks))


def config_of(args: EngineArgs, replica: Replica, cached: bool) -> EngineConfig:
    """The configuration to replay with; `cached`: prefix ids are there for a cache to find."""
    kv_blocks = args.num_gpu_blocks or replica.kv_blocks(args.block_size, args.max_num_batched_tokens)
    return EngineConfig(
        engine_id="recorded",
        run_id="recorded",
        host="recorded",
        gpu_type=replica.gpu.name,
        gpus=replica.tp,
        model=replica.model.name,
        weights=replica.weights,
        kv_blocks=kv_blocks,
        block_bytes=replica.block_bytes(args.block_size),
        step_model=replica.step_model(),
        max_num_seqs=args.max_num_seqs,
        max_num_batched_tokens=args.max_num_batched_tokens,
        block_size=args.block_size,
        enable_prefix_caching=args.enable_prefix_caching and cached,
        prefix_block_tokens=args.block_size,
        async_scheduling=args.async_scheduling,
    )
