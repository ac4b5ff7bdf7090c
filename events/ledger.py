"""The ledger: every GPU-nanosecond of every minute, owned by exactly one account."""

from typing import Annotated, Literal, NamedTuple

from .table import Table, col

Account = Literal["tenant", "underfill", "idle", "overhead", "unobserved"]
MINUTE_NS = 60_000_000_000


class LedgerLine(NamedTuple):
    """What one account used within one UTC minute.

    Lines with the same key add up: the ledger only ever grows, so a late event is one more line. Names that do not
    apply (the tenant of idle time) are empty.
    """

    minute_ns: Annotated[int, col("UTC ns", "start of the minute")]
    engine_id: Annotated[str, col("", "the engine")]
    host: Annotated[str, col("", "its host")]
    gpu_type: Annotated[str, col("", "its GPU type")]
    account: Annotated[str, col("", "tenant, underfill, idle, overhead or unobserved")]
    tenant_id: Annotated[str, col("", "the tenant; on overhead the tenant it was done for; else empty")]
    tier: Annotated[str, col("", "fast, standard, batch or empty")]
    model: Annotated[str, col("", "the model served")]
    phase: Annotated[str, col("", "prefill, decode or empty")]
    gpu_ns: Annotated[int, col("GPU·ns", "GPU time")]
    prompt_tokens: Annotated[int, col("tokens", "prompt tokens computed or served from the cache")]
    cached_tokens: Annotated[int, col("tokens", "the cached part of them")]
    output_tokens: Annotated[int, col("tokens", "tokens generated")]
    requests: Annotated[int, col("requests", "requests that ended in this minute")]
    kv_block_ns: Annotated[int, col("block·ns", "KV blocks held × time")]
    basis: Annotated[str, col("", "step, interval or estimated")]


LEDGER = Table(
    "ledger",
    LedgerLine,
    key=(
        "minute_ns",
        "engine_id",
        "host",
        "gpu_type",
        "account",
        "tenant_id",
        "tier",
        "model",
        "phase",
        "basis",
    ),
    time="minute_ns",
    sort=("engine_id", "minute_ns", "account", "tenant_id", "tier", "phase"),
)
