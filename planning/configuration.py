"""An engine's configuration from the record of its run."""

from __future__ import annotations

from typing import Any

from ..engine.args import read_args
from ..engine.config import BLOCK_SIZE, EngineConfig
from ..events import Run
from ..roofline import Replica, gpu, model
from ..roofline.constants import find_constants
from ..roofline.errors import SpecError
from ..roofline.step_model import StepModel
from .errors import PlanError

KV_FORMATS = ("bf16", "fp8")
DEFAULT_TOKENS = EngineConfig.max_num_batched_tokens


def configuration_of(run: Run) -> EngineConfig:
    """The configuration that a run had, to the last constant where an embedded engine recorded it.

    What a run did not tell (a scraped engine knows neither its step model nor its KV blocks) is what Farebox predicts
    for its GPU and model. Raises PlanError where that is not known either.
    """
    step_model, blocks, block_bytes = run.step_model, run.kv_blocks, run.block_bytes
    tokens = run.max_num_batched_tokens or DEFAULT_TOKENS
    if step_model is None or blocks is None or block_bytes is None:
        replica = _predicted(run)
        blocks = blocks or replica.kv_blocks(BLOCK_SIZE, tokens)
        block_bytes = block_bytes or replica.block_bytes(BLOCK_SIZE)
        step_model = step_model or replica.step_model().to_json()
    told: dict[str, Any] = read_args(run.engine_args)
    return EngineConfig(
        engine_id=run.engine_id,
        run_id=run.run_id,
        host=run.host,
        gpu_type=run.gpu_type,
        gpus=run.gpus,
        model=run.model,
        weights=run.weights,
        kv_blocks=blocks,
        block_bytes=block_bytes,
        step_model=StepModel.from_json(step_model),
        mode=_mode(run),
        max_num_seqs=run.max_num_seqs or EngineConfig.max_num_seqs,
        max_num_batched_tokens=tokens,
        gpu_uuids=run.gpu_uuids,
        **told,
    )


def _predicted(run: Run) -> Replica:
    try:
        return replica_of(run.gpu_type, run.model, run.weights, run.gpus)
    except PlanError as error:
        told = (
            f"engine {run.engine_id} cannot be replayed: its step times are not recorded, and nobody can predict them"
        )
        raise PlanError(f"{told}: {error}") from error


def _mode(run: Run) -> Any:
    return run.mode if run.mode in ("continuous", "static", "none") else "continuous"


def replica_of(gpu_type: str, model_name: str, weights: str, tp: int, kv: str = "bf16") -> Replica:
    """The replica of these names with the constants of this host; PlanError names what nobody knows."""
    try:
        device = gpu(gpu_type)
        return Replica(device, model(model_name), weights, tp, kv, find_constants(device.name))
    except SpecError as error:
        raise PlanError(f"{model_name} on {tp}×{gpu_type}: {error}") from error


def recorded_replica(config: EngineConfig) -> Replica:
    """The replica that a configuration was made of; its KV format is told by the size of its blocks."""
    sizes: dict[str, int] = {}
    for kv in KV_FORMATS:
        replica = replica_of(config.gpu_type, config.model, config.weights, config.gpus, kv)
        sizes[kv] = replica.block_bytes(config.block_size)
        if sizes[kv] == config.block_bytes:
            return replica
    return replica_of(config.gpu_type, config.model, config.weights, config.gpus)
