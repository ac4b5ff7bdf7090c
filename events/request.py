"""A request: one ride from arrival to end."""

from typing import Annotated, Literal, NamedTuple

from .table import Table, col

FinishReason = Literal["stop", "length", "abort", "error", "rejected"]
Tier = Literal["fast", "standard", "batch"]


class Request(NamedTuple):
    """One finished request, told once: arrived ≤ scheduled ≤ first token ≤ finished, where they are known.

    Whoever sees requests from outside the engine may not know its counts: null is unknown, which is not 0.
    """

    request_id: Annotated[str, col("", "unique within the run")]
    engine_id: Annotated[str, col("", "the engine that served it")]
    run_id: Annotated[str, col("", "the run of the engine")]
    tenant_id: Annotated[str, col("", "who asked")]
    tier: Annotated[str, col("", "fast, standard or batch")]
    model: Annotated[str, col("", "the model it was for")]
    arrived_ns: Annotated[int, col("UTC ns", "arrival")]
    scheduled_ns: Annotated[int | None, col("UTC ns", "start of its first step; null: it never rode")]
    first_token_ns: Annotated[int | None, col("UTC ns", "its first output token; null: it got none")]
    finished_ns: Annotated[int, col("UTC ns", "end")]
    prompt_tokens: Annotated[int | None, col("tokens", "prompt length, cached tokens included; null: not told")]
    cached_tokens: Annotated[
        int | None, col("tokens", "part of the prompt served from the prefix cache; null: not told")
    ]
    output_tokens: Annotated[int | None, col("tokens", "tokens generated, reasoning included; null: not told")]
    reasoning_tokens: Annotated[int | None, col("tokens", "part of the output that was reasoning; null: not told")]
    max_tokens: Annotated[int | None, col("tokens", "the output limit asked for; null: none")]
    finish_reason: Annotated[str, col("", "stop, length, abort, error or rejected")]
    preemptions: Annotated[int | None, col("", "times it was put off the batch; null: not told")]
    prefix_ids: Annotated[tuple[int, ...] | None, col("", "ids of its prompt's prefix blocks; null: not known")]
    gpu_ns: Annotated[int | None, col("GPU·ns", "its part of the steps, rounded; informative, bills use shares")]


REQUESTS = Table(
    "requests",
    Request,
    key=("engine_id", "run_id", "request_id"),
    time="finished_ns",
    sort=("engine_id", "finished_ns"),
)
