"""Causes in plain words: what happened when an effect is the one that moved the bill most."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from .effects import Effect, Stream, Traffic, Usage
from .explanation import Change, Explanation
from .figures import Figures
from .rating import HOUR_NS
from .riders import riders

SHORT = Fraction(1, 2)
"""Requests with fewer tokens than this part of the others' are short."""
_Cause = Callable[[Explanation, Change], str]


def cause_text(explanation: Explanation, change: Change, effect: Effect) -> str:
    """What a change did, as a clause without a full stop."""
    return _CAUSES[effect](explanation, change)


def named(change: Change) -> str:
    """A change's tenant (or team, …) or account, without characters that could move a cursor or hide."""
    if change.account != "tenant":
        return change.account
    return "".join(char if char.isprintable() else "�" for char in change.name) or "(none)"


def percent(part: int, whole: int) -> str:
    """A part of a whole in percent; a dash when the whole is nothing."""
    return f"{round(Fraction(100 * part, whole))} %" if whole else "–"


def _of(change: Change) -> str:
    return f"{named(change)}'s"


def _mix_cause(explanation: Explanation, change: Change) -> str:
    """Which stream gained the most requests, and what a token takes there."""
    stream = max(change.after.streams, key=lambda stream: _gain(change, stream))
    gained, moved = _gain(change, stream), change.after.streams[stream]
    if gained <= 0:
        return f"{_of(change)} tokens shifted between tiers or models"
    rest = _others(change.after, stream) or change.before.total
    short = ", the short ones," if _length(moved) < SHORT * _length(rest) else ""
    place = "fast mode" if stream[0] == "fast" else f"tier {stream[0]}" if stream[0] else "no tier"
    rode = _together(riders(moved, explanation.seat_costs.get(stream[1])))
    dearer = _dearer(moved, change.before.total)
    return f"{round(gained * 100)} % of {_of(change)} requests{short} moved to {place}{rode}{dearer}"


def _together(together: Fraction | None) -> str:
    """How many rode at a time, as far as it is known."""
    if together is None:
        return ""
    return ", riding alone" if together < Fraction(3, 2) else f", riding about {round(together)} at a time"


def _dearer(moved: Traffic, before: Traffic) -> str:
    times = _times(moved, before)
    return f": {times} the GPU time per output token" if times else ""


def _times(after: Traffic, before: Traffic) -> str:
    """How many times the GPU time an output token took; empty where it cannot be said."""
    if not (after.output_tokens and before.output_tokens and before.gpu_ns):
        return ""
    ratio = Fraction(after.gpu_ns, after.output_tokens) / Fraction(before.gpu_ns, before.output_tokens)
    return f"{float(ratio):.1f}×"


def _gain(change: Change, stream: Stream) -> Fraction:
    """How much more of all requests a stream has."""
    parts = [
        Fraction(usage.streams[stream].requests if stream in usage.streams else 0, max(usage.total.requests, 1))
        for usage in (change.before, change.after)
    ]
    return parts[1] - parts[0]


def _others(usage: Usage, stream: Stream) -> Traffic | None:
    """The other streams together; None when there is no other with requests."""
    rest = Traffic()
    for other, traffic in usage.streams.items():
        if other != stream:
            rest += traffic
    return rest if rest.requests else None


def _length(traffic: Traffic) -> Fraction:
    return Fraction(traffic.prompt_tokens + traffic.output_tokens, max(traffic.requests, 1))


def _per_request(text: str, count: Callable[[Traffic], int]) -> _Cause:
    def cause(_: Explanation, change: Change) -> str:
        before, after = (
            round(Fraction(count(usage.total), max(usage.total.requests, 1))) for usage in (change.before, change.after)
        )
        return f"{_of(change)} {text} went from {before:,} to {after:,} tokens"

    return cause


def _volume_cause(_: Explanation, change: Change) -> str:
    before, after = change.before.total.requests, change.after.total.requests
    return f"{named(change)} sent {after:,} requests after {before:,}"


def _cache_cause(_: Explanation, change: Change) -> str:
    before, after = (
        percent(usage.total.cached_tokens, usage.total.prompt_tokens) for usage in (change.before, change.after)
    )
    return f"the cache served {after} of {_of(change)} prompts after {before}"


def _efficiency_cause(explanation: Explanation, change: Change) -> str:
    stream = max(change.after.streams, key=lambda stream: change.after.streams[stream].gpu_ns)
    seat_cost = explanation.seat_costs.get(stream[1])
    before, after = (
        riders(usage.streams[stream], seat_cost) if stream in usage.streams else None
        for usage in (change.before, change.after)
    )
    rode = f"{_together(after)} after {round(before)}" if before is not None and after is not None else ""
    times = _times(change.after.total, change.before.total)
    amount = f"{times} the GPU time" if times else "another amount of GPU time"
    return f"{_of(change)} tokens took {amount}{rode}"


def _idle_cause(explanation: Explanation, change: Change) -> str:
    if change.account == "idle":
        return _account_cause("GPUs idled")(explanation, change)
    before, after = (explanation.figures.text(usage.idle) for usage in (change.before, change.after))
    return f"{_of(change)} part of the idle time is {after} after {before}"


def _account_cause(text: str) -> _Cause:
    def cause(_: Explanation, change: Change) -> str:
        before, after = (Figures(None, 2).text(u.total.gpu_ns) for u in (change.before, change.after))
        return f"{text} {after} GPU·h after {before}"

    return cause


def _rate_cause(explanation: Explanation, change: Change) -> str:
    before, after = (
        explanation.figures.text(round(Fraction(usage.value * HOUR_NS, usage.total.gpu_ns)))
        for usage in (change.before, change.after)
    )
    return f"a GPU-hour of {named(change)} costs {after} {explanation.currency} after {before}"


_CAUSES: dict[Effect, _Cause] = {
    "new": lambda _, change: f"{named(change)} is new",
    "gone": lambda _, change: f"{named(change)} is gone",
    "volume": _volume_cause,
    "prompt length": _per_request("prompts", lambda traffic: traffic.prompt_tokens),
    "cache": _cache_cause,
    "output length": _per_request("answers", lambda traffic: traffic.output_tokens),
    "tier mix": _mix_cause,
    "efficiency": _efficiency_cause,
    "idle": _idle_cause,
    "overhead": _account_cause("loading and recomputing took"),
    "underfill": _account_cause("seats kept empty on purpose took"),
    "unobserved": _account_cause("nobody saw"),
    "correction": lambda explanation, change: "corrections of closed periods",
    "rate": _rate_cause,
}
