"""Options that describe an embedded engine, for every command that runs one."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import click

from .options import constants_option, gpu_option, kv_cache_option, model_option, weights_option
from .replicas import find_replica

_OPTIONS = (
    gpu_option,
    model_option,
    click.option("--tp", default=1, show_default=True, help="GPUs that share one replica (tensor parallel size)."),
    weights_option,
    kv_cache_option,
    constants_option,
    click.option(
        "--mode",
        type=click.Choice(["continuous", "static", "none"]),
        default="continuous",
        show_default=True,
        help="How requests get on: at every step, in whole batches, or one at a time.",
    ),
    click.option(
        "--scheduling-policy",
        type=click.Choice(["fcfs", "priority"]),
        default="fcfs",
        show_default=True,
        help="Who is put off when the KV cache is full: the newest, or the lowest priority (tier).",
    ),
    click.option(
        "--max-num-seqs",
        type=click.IntRange(1, 2**31),
        default=256,
        show_default=True,
        help="Seats: the most sequences in one step.",
    ),
    click.option(
        "--max-num-batched-tokens",
        type=click.IntRange(1, 2**31),
        default=8192,
        show_default=True,
        help="The most token rows in one step.",
    ),
    click.option(
        "--enable-prefix-caching/--no-enable-prefix-caching",
        default=None,
        help="Keep KV blocks for prompts that begin alike.  [default: on if a trace has prefix ids, as mooncake's]",
    ),
    click.option(
        "--num-speculative-tokens",
        type=click.IntRange(0, 64),
        default=0,
        show_default=True,
        help="Tokens drafted per sequence and step; 0: no speculative decoding.",
    ),
    click.option(
        "--acceptance-rate",
        type=click.FloatRange(0, 1),
        default=0.7,
        show_default=True,
        help="How often a drafted token is right if those before it are.",
    ),
    click.option("--draft-model", help="Model that drafts, on the same GPUs.  [default: none, drafts are free]"),
    click.option(
        "--batch-wait-ms",
        type=click.IntRange(0, 3_600_000),
        default=50,
        show_default=True,
        help="static: how long an unfilled batch waits.",
    ),
    click.option(
        "--fast-cap", type=click.IntRange(1), help="The most co-riders while a request of the fast tier rides."
    ),
    click.option("--engine-id", help="Name of the engine.  [default: embedded-GPU-MODEL]"),
)
_LIMITS = (
    "mode",
    "scheduling_policy",
    "max_num_seqs",
    "max_num_batched_tokens",
    "enable_prefix_caching",
    "num_speculative_tokens",
    "acceptance_rate",
    "batch_wait_ms",
    "fast_cap",
    "engine_id",
)
"""What `EmbeddedEngine` takes beside its replica, under the names of the options."""


def engine_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options that describe an engine; it gets them as one argument, `engine`."""

    @wraps(command)
    def call(
        *,
        gpu: str,
        model: str,
        tp: int,
        weights: str,
        kv_cache_dtype: str,
        constants: Path | None,
        draft_model: str | None,
        **rest: Any,
    ) -> None:
        from ..collector.embedded import EmbeddedEngine

        limits = {name: rest.pop(name) for name in _LIMITS}
        replica = find_replica(gpu, model, weights, tp, kv_cache_dtype, constants)
        if draft_model is not None and not limits["num_speculative_tokens"]:
            raise click.UsageError("--draft-model drafts nothing without --num-speculative-tokens N")
        draft = None if draft_model is None else find_replica(gpu, draft_model, weights, tp, kv_cache_dtype, constants)
        command(engine=EmbeddedEngine(replica, draft=draft, **limits), **rest)

    for option in reversed(_OPTIONS):
        call = option(call)
    return call
