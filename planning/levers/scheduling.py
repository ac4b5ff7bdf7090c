"""Levers of one engine's scheduling: fast mode, tiers, seats, prefix caching."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ..slo import slo_of
from ..words import percent_text, wait_text
from .candidate import Candidate, Look
from .evidence import fast_share, shared_part, waited_ns

FULL, LONG_WAIT_NS = 0.8, 1_000_000_000
"""Seats that are taken so far, or waited for so long, are too few."""


def fast_mode(look: Look) -> Iterator[Candidate]:
    """Fast requests keep others off the batch while they ride."""
    if all(run.config.fast_cap is None for run in look.recorded.runs):
        return
    caps = sorted({run.config.fast_cap for run in look.recorded.runs if run.config.fast_cap is not None})
    fast = Counter(a.tenant_id for a in look.recorded.arrivals if a.tier == "fast")
    if not fast:
        return
    told = f"{sum(fast.values()):,} fast requests ride with at most {caps[0]} on board"
    evidence = f"{told}; {fast_share(look)}"
    yield Candidate(
        "fast mode", "Drop the fast cap: let others ride beside fast requests", evidence, ("--set", "fast_cap=off")
    )
    for tenant in fast:
        arguments = ("--route", f"tenant={tenant}:tier=standard")
        yield Candidate("fast mode", f"Let {tenant} ride in tier standard", evidence, arguments)


def waiting(look: Look) -> Iterator[Candidate]:
    """Whoever has no promise may wait."""
    tiers = Counter((a.tenant_id, a.tier) for a in look.recorded.arrivals)
    tenants = {tenant for tenant, tier in tiers if tier != "batch"}
    if len(tenants) < 2:
        return
    for tenant in sorted(tenants):
        if look.slos and slo_of(look.slos, tenant) is None:
            evidence = f"{tenant} has no promise and asks in a tier that others wait for"
            yield Candidate(
                "batch tier", f"Move {tenant} to tier batch", evidence, ("--route", f"tenant={tenant}:tier=batch")
            )


def seats(look: Look) -> Iterator[Candidate]:
    """Too few seats make a queue, too many make the KV cache overflow."""
    usage, had = look.before.usage, {run.config.max_num_seqs for run in look.recorded.runs}
    if len(had) != 1 or usage.occupancy is None:
        return
    number = had.pop()
    if look.recorded.runs[0].config.mode != "none" and (usage.occupancy > FULL or waited_ns(look) > LONG_WAIT_NS):
        taken = f"{percent_text(usage.occupancy)} of {number} seats are taken while steps run"
        evidence = f"{taken}; 1 % of the requests wait {wait_text(waited_ns(look))} or more for one"
        capped = any(run.config.fast_cap is not None for run in look.recorded.runs)
        cap = ("--set", "fast_cap=off") if capped else ()
        for more in (4 * number, 16 * number):
            arguments = (*cap, "--set", f"max_num_seqs={more}")
            title = f"{more} seats instead of {number}" + (", and no fast cap" if capped else "")
            yield Candidate("seats", title, evidence, arguments)
    if usage.preemptions:
        again = look.before.steps.recomputed_tokens
        evidence = f"{usage.preemptions:,} riders were put off for lack of KV blocks, and {again:,} rows computed twice"
        for fewer in (number // 2, number // 4):
            if fewer:
                title = f"{fewer} seats instead of {number}: past the knee"
                yield Candidate("seats", title, evidence, ("--set", f"max_num_seqs={fewer}"))


def batching(look: Look) -> Iterator[Candidate]:
    """One at a time, or whole batches, where requests could board at every step."""
    modes = {run.config.mode for run in look.recorded.runs} - {"continuous"}
    if modes:
        evidence = (
            f"requests ride in mode {', '.join(sorted(modes))}: {look.before.usage.mean_running or 0:.1f} on board"
        )
        yield Candidate("batching", "Let requests board at every step", evidence, ("--set", "mode=continuous"))


def prefixes(look: Look) -> Iterator[Candidate]:
    """Prompts that begin alike, computed again and again."""
    if any(run.config.enable_prefix_caching for run in look.recorded.runs):
        return
    part = shared_part(look.recorded)
    if part:
        evidence = f"{percent_text(part)} of all prompt tokens repeat what an earlier prompt began with"
        arguments = ("--set", "prefix_caching=on")
        yield Candidate("prefix caching", "Keep KV blocks for prompts that begin alike", evidence, arguments)
