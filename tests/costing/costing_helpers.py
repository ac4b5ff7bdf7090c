"""Makers of steps, cells and runs for the costing tests."""

from dataclasses import replace

from farebox.events import Request, Run, Share, Step
from farebox.roofline.step_model import UNITS_PER_NS, StepModel

US = 1000 * UNITS_PER_NS
"""A microsecond in 2⁻²⁰ ns."""


def make_model(overhead: int = 300 * US, weights: int = 6000 * US, row: int = 20 * US, row_comm: int = 0) -> StepModel:
    return StepModel(overhead, weights, row, row_comm, 0, 0, 0, 0, 0, 0)


def with_ridge(model: StepModel) -> StepModel:
    """The same model with two lines around its ridge: L is larger there, and the same far from it."""
    if model.weights < 4 or model.row < 4:
        return model
    return replace(model, ridge=((model.weights * 3 // 4, model.row // 2), (model.weights // 4, model.row * 7 // 8)))


def with_experts(model: StepModel) -> StepModel:
    """The same model as a mixture of experts: one row reads a quarter of its weights, many read all."""
    part = model.weights // 4
    return replace(model, streams=((part, part), (2 * part, part // 2), (model.weights, 0)))


def make_cell(**values) -> Share:
    defaults = {
        "engine_id": "e",
        "run_id": "r",
        "step_seq": 0,
        "started_ns": 0,
        "account": "tenant",
        "tenant_id": "a",
        "tier": "standard",
        "phase": "decode",
        "seqs": 1,
        "rows": 1,
        "output_tokens": 0,
        "cached_tokens": 0,
        "attn": 0,
        "kv_block_ns": 0,
        "gpu_ns": None,
    }
    return Share(**(defaults | values))


def make_step(**values) -> Step:
    defaults = {
        "engine_id": "e",
        "run_id": "r",
        "step_seq": 0,
        "started_ns": 0,
        "duration_ns": 0,
        "idle_before_ns": 0,
        "gpus": 1,
        "prefill_ns": None,
        "decode_ns": None,
        "running": 0,
        "waiting": 0,
        "prefill_seqs": 0,
        "decode_seqs": 0,
        "prefill_tokens": 0,
        "decode_tokens": 0,
        "output_tokens": 0,
        "cached_tokens": 0,
        "recomputed_tokens": 0,
        "rejected_tokens": 0,
        "kv_blocks_used": None,
        "kv_blocks_total": None,
        "preemptions": 0,
        "held_by": None,
        "flops": None,
        "bytes": None,
        "basis": "step",
    }
    return Step(**(defaults | values))


def make_run(**values) -> Run:
    defaults = {
        "engine_id": "e",
        "run_id": "r",
        "host": "h",
        "gpu_type": "H100",
        "gpu_uuids": (),
        "gpus": 1,
        "model": "llama",
        "weights": "bf16",
        "mode": "continuous",
        "max_num_seqs": 64,
        "max_num_batched_tokens": None,
        "block_bytes": None,
        "kv_blocks": None,
        "step_model": None,
        "clock": "real",
        "started_ns": 0,
        "load_ns": 0,
        "heartbeat_ns": 0,
        "ended_ns": None,
    }
    return Run(**(defaults | values))


def case_a() -> list[Share]:
    return [make_cell(tenant_id=name, attn=a * US) for name, a in zip("abc", (200, 600, 1200), strict=True)]


def case_b() -> list[Share]:
    return [*case_a(), make_cell(tenant_id="d", phase="prefill", rows=512, attn=100 * US)]


def make_request(**values) -> Request:
    defaults = {
        "request_id": "q",
        "engine_id": "e",
        "run_id": "r",
        "tenant_id": "a",
        "tier": "standard",
        "model": "llama",
        "arrived_ns": 0,
        "scheduled_ns": 0,
        "first_token_ns": None,
        "finished_ns": 0,
        "prompt_tokens": 1,
        "cached_tokens": 0,
        "output_tokens": 1,
        "reasoning_tokens": None,
        "max_tokens": None,
        "finish_reason": "stop",
        "preemptions": 0,
        "prefix_ids": None,
        "gpu_ns": None,
    }
    return Request(**(defaults | values))
