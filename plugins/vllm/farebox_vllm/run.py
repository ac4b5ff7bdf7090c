"""The run: what an engine process says of itself, once, from vLLM's configuration."""

from __future__ import annotations

import os
import re
import secrets
import socket
import time
from importlib import import_module
from typing import Any, NamedTuple

from .clock import Clock
from .log import LOG
from .settings import Settings

WEIGHTS = {
    "fp8": "fp8", "int8": "int8", "w8a8": "int8", "awq": "int4", "gptq": "int4", "bfloat16": "bf16", "float16": "bf16",
}  # fmt: skip
"""Weight formats by what vLLM calls the quantization, or the type of the weights where there is none."""


class Names(NamedTuple):
    """By what a run is known."""

    engine_id: str
    run_id: str
    model: str


def name_run(scheduler: Any, settings: Settings) -> Names:
    """Name the run: the engine as the operator named it, or by host, model and devices; one engine per rank.

    Two replicas on one host have devices of their own, so they get names of their own.
    """
    config = scheduler.vllm_config
    served = getattr(config.model_config, "served_model_name", None) or config.model_config.model
    model = settings.model or (served if isinstance(served, str) else served[0])
    engine_id = settings.engine or ".".join(filter(None, (socket.gethostname(), _last(model), _devices())))
    parallel = config.parallel_config
    rank: int = getattr(parallel, "data_parallel_index", parallel.data_parallel_rank)
    if rank or parallel.data_parallel_size > 1:  # ranks of a dense model run as if each were alone
        engine_id = f"{engine_id}.dp{rank}"
    started = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    return Names(engine_id, f"{started}-{os.getpid()}-{secrets.token_hex(3)}", model)


def describe_run(scheduler: Any, names: Names, clock: Clock, started_ns: int, loaded_ns: int) -> dict[str, Any]:
    """The fields of a `Run` (docs/spool.md); what vLLM does not tell is left out."""
    config = scheduler.vllm_config
    gpus: int = config.parallel_config.world_size
    run: dict[str, Any] = {
        "engine_id": names.engine_id,
        "run_id": names.run_id,
        "host": socket.gethostname(),
        "gpus": gpus,
        "model": names.model,
        "mode": "continuous",
        "clock": "real",
        "max_num_seqs": config.scheduler_config.max_num_seqs,
        "max_num_batched_tokens": config.scheduler_config.max_num_batched_tokens,
        "started_ns": clock.utc(started_ns),
        "load_ns": loaded_ns - started_ns,
    }
    # Each of these asks for what some version or platform does not know.
    for tell in (_weights, _blocks, _hardware):
        try:
            run |= tell(scheduler, gpus)
        except Exception:
            LOG.debug("farebox: a part of the run is not known", exc_info=True)
    return run


def _weights(scheduler: Any, _: int) -> dict[str, Any]:
    model = scheduler.vllm_config.model_config
    method = str(model.quantization or model.dtype).lower()
    for name, weights in WEIGHTS.items():
        if name in method:
            return {"weights": weights}
    return {}


def blocks_of(scheduler: Any) -> int:
    """KV blocks that requests can hold: one more is vLLM's null block."""
    return scheduler.kv_cache_manager.block_pool.num_gpu_blocks - 1


def _blocks(scheduler: Any, gpus: int) -> dict[str, Any]:
    cache = scheduler.kv_cache_config
    per_gpu = sum(tensor.size for tensor in cache.kv_cache_tensors) // cache.num_blocks
    return {"kv_blocks": blocks_of(scheduler), "block_bytes": per_gpu * gpus}


def _hardware(scheduler: Any, gpus: int) -> dict[str, Any]:
    platform: Any = import_module("vllm.platforms").current_platform
    found: dict[str, Any] = {"gpu_type": platform.get_device_name()}
    try:
        found["gpu_uuids"] = [str(platform.get_device_uuid(number)) for number in range(gpus)]
    except NotImplementedError:
        found["gpu_uuids"] = []
    return found


def _devices() -> str:
    visible = os.environ.get("CUDA_VISIBLE_DEVICES") or os.environ.get("HIP_VISIBLE_DEVICES") or ""
    return "gpu" + re.sub(r"[^\w-]+", "-", visible) if visible else ""


def _last(model: str) -> str:
    return model.rstrip("/").rpartition("/")[2]
