"""A step: one iteration of an engine, and what it was made of."""

from typing import Annotated, Literal, NamedTuple

from .table import Table, col

Basis = Literal["step", "interval", "estimated"]
Phase = Literal["decode", "prefill"]


class Step(NamedTuple):
    """One iteration: every sequence in it advances, and the weights are read once for all of them."""

    engine_id: Annotated[str, col("", "the engine")]
    run_id: Annotated[str, col("", "the run of the engine")]
    step_seq: Annotated[int, col("", "number of the step in its run, from 0 without holes")]
    started_ns: Annotated[int, col("UTC ns", "start")]
    duration_ns: Annotated[int, col("ns", "length of the step on the engine's clock")]
    idle_before_ns: Annotated[int, col("ns", "time without a step since the step before (or since the run was up)")]
    gpus: Annotated[int, col("GPUs", "GPUs of the replica")]
    prefill_ns: Annotated[
        int | None, col("ns", "part of the duration that prompts caused; null until costing split it")
    ]
    decode_ns: Annotated[int | None, col("ns", "the rest of the duration; null until costing split it")]
    running: Annotated[int, col("sequences", "sequences on board")]
    waiting: Annotated[int, col("sequences", "requests in the queue when the step was scheduled")]
    prefill_seqs: Annotated[int, col("sequences", "sequences that computed prompt rows")]
    decode_seqs: Annotated[int, col("sequences", "sequences that decoded")]
    prefill_tokens: Annotated[int, col("rows", "prompt rows computed, recomputed ones included")]
    decode_tokens: Annotated[int, col("rows", "decode rows computed")]
    output_tokens: Annotated[int, col("tokens", "tokens sampled and kept")]
    cached_tokens: Annotated[int, col("tokens", "prompt tokens served from the prefix cache at admission")]
    recomputed_tokens: Annotated[int, col("rows", "rows computed a second time after a preemption")]
    rejected_tokens: Annotated[int, col("rows", "draft rows that speculation threw away")]
    kv_blocks_used: Annotated[int | None, col("blocks", "KV blocks in use at the end of the step")]
    kv_blocks_total: Annotated[int | None, col("blocks", "KV blocks of the replica")]
    preemptions: Annotated[int, col("sequences", "sequences put off the batch for lack of KV blocks")]
    held_by: Annotated[str | None, col("", "whose cap stopped admission while requests waited; null: nobody's")]
    flops: Annotated[int | None, col("FLOP", "arithmetic of the step over all GPUs")]
    bytes: Annotated[int | None, col("bytes", "memory read by the step over all GPUs")]
    basis: Annotated[str, col("", "step (measured or modelled), interval or estimated")]

    @property
    def ended_ns(self) -> int:
        """End of the step, UTC."""
        return self.started_ns + self.duration_ns

    @property
    def kv_part(self) -> float | None:
        """Part of the KV blocks in use, 0…1; None: not known."""
        if self.kv_blocks_used is None or not self.kv_blocks_total:
            return None
        return self.kv_blocks_used / self.kv_blocks_total


class Share(NamedTuple):
    """One cell of a step: what a tenant's sequences of one tier and phase did in it, and what they pay.

    An engine emits cells with `gpu_ns` null (and steps with `prefill_ns` and `decode_ns` null); costing fills them in.
    Over a step the `gpu_ns` sum to `duration_ns × gpus`.
    """

    engine_id: Annotated[str, col("", "the engine")]
    run_id: Annotated[str, col("", "the run of the engine")]
    step_seq: Annotated[int, col("", "number of the step in its run")]
    started_ns: Annotated[int, col("UTC ns", "start of the step")]
    account: Annotated[str, col("", "tenant, underfill or overhead")]
    tenant_id: Annotated[str, col("", "the tenant; on overhead the tenant it was done for")]
    tier: Annotated[str, col("", "fast, standard or batch")]
    phase: Annotated[str, col("", "prefill or decode")]
    seqs: Annotated[int, col("sequences", "sequences in the cell")]
    rows: Annotated[int, col("rows", "token rows computed")]
    output_tokens: Annotated[int, col("tokens", "tokens sampled and kept")]
    cached_tokens: Annotated[int, col("tokens", "prompt tokens served from the prefix cache at admission")]
    attn: Annotated[int, col("2⁻²⁰ ns", "attention time of the cell by the step model, Σ a_i")]
    kv_block_ns: Annotated[int, col("block·ns", "KV blocks held × time")]
    gpu_ns: Annotated[int | None, col("GPU·ns", "what the cell pays; null until costing has split the step")]


STEPS = Table(
    "steps",
    Step,
    key=("engine_id", "run_id", "step_seq"),
    time="started_ns",
    sort=("engine_id", "started_ns"),
)
SHARES = Table(
    "shares",
    Share,
    key=("engine_id", "run_id", "step_seq", "account", "tenant_id", "tier", "phase"),
    time="started_ns",
    sort=("engine_id", "started_ns", "account", "tenant_id", "tier", "phase"),
)
