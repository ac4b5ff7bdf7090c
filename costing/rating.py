"""Rating: what GPU time costs, in integer micro-units of a currency that add up to the invoice."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import ROUND_HALF_EVEN, Decimal, localcontext
from fractions import Fraction
from itertools import groupby, pairwise
from typing import Literal

from ..events import Rate
from .apportion import apportion, round_together

MICRO = 1_000_000
HOUR_NS = 3_600_000_000_000
IdlePolicy = Literal["separate", "weighted", "even", "reservation"]


class RateError(ValueError):
    """Rates that do not say what an hour costs."""


def price_of(text: str | Decimal) -> Decimal:
    """A price of one GPU-hour; raises RateError unless it is a finite amount of at least 0."""
    try:
        price = Decimal(text)
    except ArithmeticError:
        raise RateError(f"{text!r} is not a decimal price") from None
    if not price.is_finite() or price < 0:
        raise RateError(f"{text!r} is not a price: it must be 0 or more")
    return price


def invoice(gpu_ns: int, per_gpu_hour: Decimal) -> int:
    """What `gpu_ns` GPU-nanoseconds cost, in micro-units, rounded half to even."""
    return round(_cost(gpu_ns, per_gpu_hour))


def amounts(gpu_ns: Sequence[int], per_gpu_hour: Decimal) -> list[int]:
    """Each line's cost in micro-units, by largest remainder, so that the sum is the `invoice` of the sum."""
    return round_together([_cost(ns, per_gpu_hour) for ns in gpu_ns])


def _cost(gpu_ns: int, per_gpu_hour: Decimal) -> Fraction:
    return gpu_ns * Fraction(price_of(per_gpu_hour)) * MICRO / HOUR_NS


def idle_weights(policy: IdlePolicy, busy_ns: Sequence[int], reserved_ns: Sequence[int] | None = None) -> list[int]:
    """How a policy weighs each tenant when idle cost is spread (GPU-nanoseconds, one of each list per tenant).

    `separate` gives it to nobody, `weighted` goes by busy time, `even` by head, `reservation` by the unused part of
    what each tenant reserved. Raises ValueError for `reservation` without `reserved_ns`.
    """
    match policy:
        case "separate":
            return [0] * len(busy_ns)
        case "weighted":
            return list(busy_ns)
        case "even":
            return [1] * len(busy_ns)
        case "reservation":
            if reserved_ns is None:
                raise ValueError("the reservation policy needs what each tenant reserved")
            return [max(reserved - busy, 0) for busy, reserved in zip(busy_ns, reserved_ns, strict=True)]


def spread(amount: int, weights: Sequence[int]) -> tuple[list[int], int]:
    """Split an amount by weights; what stays on its own line is second: all of it when the weights are zero, else 0."""
    if not any(weights):
        return [0] * len(weights), amount
    return apportion(amount, weights), 0


def per_1k(amount: int, tokens: int, places: int = 6) -> Decimal | None:
    """Whole units per 1000 tokens of an amount in millionths, rounded half to even; None without tokens."""
    if not tokens:
        return None
    scaled = round(Fraction(amount * 10**places, tokens * (MICRO // 1000)))
    return Decimal(scaled).scaleb(-places)


def money_text(amount: int, places: int = 6) -> str:
    """An amount in 10⁻ᵖˡᵃᶜᵉˢ units as decimal text, exact."""
    with localcontext(prec=60, rounding=ROUND_HALF_EVEN):
        return f"{Decimal(amount).scaleb(-places):f}"


def find_rate(rates: Sequence[Rate], gpu_type: str, at_ns: int) -> Rate | None:
    """The rate of a GPU type at an instant (UTC ns), or None; a rate for the very type beats one for "*".

    Raises RateError when two rates of one GPU type hold at the same time, now or ever.
    """
    check_rates(rates)
    valid = {
        rate.gpu_type: rate for rate in rates if rate.from_ns <= at_ns and (rate.to_ns is None or at_ns < rate.to_ns)
    }
    return valid.get(gpu_type, valid.get("*"))


def check_rates(rates: Sequence[Rate]) -> None:
    """Raise RateError where two rates of one GPU type overlap, or one ends before it begins."""
    ordered = sorted(rates, key=lambda rate: (rate.gpu_type, rate.from_ns))
    for rate in ordered:
        if rate.to_ns is not None and rate.to_ns < rate.from_ns:
            raise RateError(f"the rate for {rate.gpu_type} ends at {rate.to_ns}, before it begins at {rate.from_ns}")
    for gpu_type, group in groupby(ordered, key=lambda rate: rate.gpu_type):
        for earlier, later in pairwise(group):
            if earlier.to_ns is None or later.from_ns < earlier.to_ns:
                raise RateError(
                    f"two rates for {gpu_type} hold at {later.from_ns}: "
                    f"{earlier.per_gpu_hour} {earlier.currency} and {later.per_gpu_hour} {later.currency}"
                )
