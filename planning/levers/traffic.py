"""Levers of the traffic itself: prompts and answers that are longer than they need to be."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from ...costing import arrow
from ..words import percent_text
from .candidate import Candidate, Look
from .evidence import quantile

MANY = 0.2
"""Answers cut at their limit worth speaking of."""
SOME = 0.03
"""Streams left by their client worth speaking of."""
LONG_PROMPT = 500
"""Tokens that all prompts of a tenant have at least: a system prompt."""


def outputs(look: Look) -> Iterator[Candidate]:
    """Answers that run into their limit, or that nobody waits for."""
    ended = _ends(look)
    for tenant, lengths in sorted(ended.items()):
        total = sum(len(each) for each in lengths.values())
        cut, left, whole = lengths["length"], lengths["abort"], lengths["stop"]
        if len(cut) > MANY * total:
            most = quantile(cut, 0.5)
            part = percent_text(len(cut) / total)
            evidence = f"{part} of {tenant}'s answers are cut at their limit, usually {most:,} tokens"
            yield _cap("cut outputs", tenant, most // 2, evidence)
        if len(left) > SOME * total and whole:
            kept = quantile(whole, 0.9)
            part = percent_text(len(left) / total)
            evidence = f"{part} of {tenant}'s clients hang up; 90 % of whole answers have at most {kept:,} tokens"
            yield _cap("abandoned streams", tenant, kept, evidence)


def _cap(lever: str, tenant: str, most: int, evidence: str) -> Candidate:
    title = f"Ask for at most {most:,} output tokens for {tenant}"
    return Candidate(lever, title, evidence, ("--route", f"tenant={tenant}:max_tokens={max(most, 1)}"), "answers")


def _ends(look: Look) -> dict[str, dict[str, list[int]]]:
    """Output tokens by tenant and how requests ended."""
    found: defaultdict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    requests = look.before.requests
    codes, tenants = arrow.coded(requests, "tenant_id")
    reasons, names = arrow.coded(requests, "finish_reason")
    tokens = arrow.ints(requests, "output_tokens")
    for tenant, reason, count in zip(codes.tolist(), reasons.tolist(), tokens.tolist(), strict=True):
        found[tenants[tenant]][names[reason]].append(count)
    return found


def prompts(look: Look) -> Iterator[Candidate]:
    """Prompts of which even the shortest is long: most of it is the same each time."""
    lengths: defaultdict[str, list[int]] = defaultdict(list)
    for arrival in look.recorded.arrivals:
        lengths[arrival.tenant_id].append(arrival.prompt_tokens)
    for tenant, tokens in sorted(lengths.items()):
        least, usual = quantile(tokens, 0.01), quantile(tokens, 0.5)
        if least >= LONG_PROMPT and 2 * least > usual:
            evidence = f"99 % of {tenant}'s prompts have {least:,} tokens or more, half of them at most {usual:,}"
            title = f"Cut a fifth from {tenant}'s prompts"
            arguments = ("--route", f"tenant={tenant}:shorten_prompts=0.2")
            yield Candidate("long prompts", title, evidence, arguments, "answers")
