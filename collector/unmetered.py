"""Requests in front of an engine that nobody meters: counted and priced by the token, without any GPU time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import chain

import pyarrow as pa

from ..events import LEDGER, MINUTE_NS, LedgerLine, Request, Run

Key = tuple[int, str, str, str]
"""A minute (UTC ns), and the tenant, tier and model of what was used in it."""


def unmetered_run(engine_id: str, run_id: str, host: str, started_ns: int) -> Run:
    """A run without GPUs, to which such requests belong; it costs nothing and may run beside others of its engine."""
    return Run(
        engine_id, run_id, host,
        gpu_type="none", gpu_uuids=(), gpus=0, model="", weights="", mode="none",
        max_num_seqs=None, max_num_batched_tokens=None, block_bytes=None, kv_blocks=None, step_model=None,
        clock="real", started_ns=started_ns, load_ns=0, heartbeat_ns=started_ns, ended_ns=None,
    )  # fmt: skip


def request_lines(run: Run, requests: Iterable[Request], *, tokens: bool = True) -> pa.Table:
    """Ledger lines of requests alone, in the minute in which each finished, under the model it was for.

    Without `tokens` (another source counts them) only the requests are counted. Counts that nobody told add nothing,
    nor do those of refused requests.
    """
    prompt: Counter[Key] = Counter()
    cached: Counter[Key] = Counter()
    output: Counter[Key] = Counter()
    number: Counter[Key] = Counter()
    for request in requests:
        key = ((request.finished_ns - 1) // MINUTE_NS * MINUTE_NS, request.tenant_id, request.tier, request.model)
        number[key] += 1
        if tokens and request.finish_reason != "rejected":
            prompt[key] += request.prompt_tokens or 0
            cached[key] += request.cached_tokens or 0
            output[key] += request.output_tokens or 0
    lines = (usage_lines(run, key, number[key], prompt[key], cached[key], output[key]) for key in sorted(number))
    return LEDGER.to_arrow(chain.from_iterable(lines))


def usage_lines(run: Run, key: Key, requests: int, prompt: int, cached: int, output: int) -> list[LedgerLine]:
    """The ledger lines of what was used: prompts and output are lines of their own, as for metered engines."""
    lines = [_line(run, key, "decode", output_tokens=output, requests=requests)]
    if prompt:
        lines.append(_line(run, key, "prefill", prompt_tokens=prompt, cached_tokens=cached))
    return lines


def _line(run: Run, key: Key, phase: str, **counts: int) -> LedgerLine:
    minute_ns, tenant_id, tier, model = key
    zero = dict.fromkeys(("gpu_ns", "prompt_tokens", "cached_tokens", "output_tokens", "requests", "kv_block_ns"), 0)
    return LedgerLine(
        minute_ns, run.engine_id, run.host, run.gpu_type, "tenant", tenant_id, tier, model, phase,
        **(zero | counts), basis="step",
    )  # fmt: skip
