"""What figures of a page must not be taken for, in words that stay the same while they hold."""

from __future__ import annotations

from .page import Page
from .reading import Reading

OTHERS = ("lmcache:",)
"""Prefixes of what libraries within an engine count on its page."""
MANY = 100_000
"""Prompt tokens without a single hit that are no coincidence of a server that has just begun."""
_WORK = ("prompt_tokens", "output_tokens")
_REQUESTS, _ANSWERS = "vllm:request_params_n_count", "vllm:e2e_request_latency_seconds_count"


class Hints:
    """Looks at one page after the other of one server."""

    def __init__(self) -> None:
        self._last: tuple[Reading, dict[str, float]] | None = None
        self._implausible = False

    def see(self, reading: Reading, page: Page) -> list[str]:
        """What has to be said of a reading and the page that it was made from."""
        others = counters_of_others(page)
        self._implausible = self._implausible or self._climb_alone(reading, others)
        self._last = reading, others
        told = [_no_hits(reading), _hits_again(reading), _several_answers(page)]
        if self._implausible:
            told.append("counters of lmcache climb while nobody rides and no token moves: nothing is taken from them")
        return [hint for hint in told if hint is not None]

    def _climb_alone(self, now: Reading, others: dict[str, float]) -> bool:
        """Whether others' counters moved between two readings of an engine that did nothing."""
        if self._last is None:
            return False
        before, were = self._last
        known = [noun for noun in _WORK if noun in before.counters and noun in now.counters]
        is_still = bool(known) and all(before.counters[noun] == now.counters[noun] for noun in known)
        nobody = before.gauges.get("running") == now.gauges.get("running") == 0
        return is_still and nobody and any(value > were.get(name, value) for name, value in others.items())


def counters_of_others(page: Page) -> dict[str, float]:
    """Counters that are not the engine's own, each summed over its series."""
    return {name: _sum(page, name) for name in page.samples if name.startswith(OTHERS) and name.endswith("_total")}


def _sum(page: Page, name: str) -> float:
    return sum(sample.value or 0 for sample in page.get(name))


def _no_hits(reading: Reading) -> str | None:
    """A cache that is asked and never hits: not the same as one that is off."""
    block = reading.facts.get("block_tokens")
    if reading.counters.get("cached_tokens") != 0 or reading.counters.get("cache_queries", 0) < MANY:
        return None
    cause = "block" if block is None else f"{block}-token block"
    return f"0 % hits in the prefix cache: shared prefixes may be shorter than the {cause}"


def _hits_again(reading: Reading) -> str | None:
    """Some versions count what is computed again after a preemption as a hit."""
    counters = reading.counters
    if not counters.get("preemptions") or not counters.get("cached_tokens") or "cache_queries" not in counters:
        return None
    return "sequences were preempted: hits may count their tokens again, so savings are those that requests tell"


def _several_answers(page: Page) -> str | None:
    """Why a page's prompt tokens are more than those of usages."""
    if not page.get(_REQUESTS) or _sum(page, _ANSWERS) <= _sum(page, _REQUESTS):
        return None
    return "some requests asked for several answers (n > 1): the page counts their prompt once for each, usages once"
