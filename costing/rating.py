"""Rating: what GPU time costs, in integer micro-units of a currency that add up to the invoice."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import ROUND_HALF_EVEN, Decimal, localcontext
from fractions import Fraction
from itertools import groupby, pairwise
from typing import Literal, get_args

from ..errors import InputError
from ..events import MINUTE_NS, Rate, RateScope
from .apportion import apportion, round_together

MICRO = 1_000_000
HOUR_NS = 3_600_000_000_000
YEAR_HOURS = 8760
IdlePolicy = Literal["separate", "weighted", "even", "reservation"]
NARROWEST_FIRST: tuple[RateScope, ...] = tuple(reversed(get_args(RateScope)))


class RateError(InputError):
    """Rates or prices that do not say what something costs."""


def exact_price(text: str | Decimal) -> Fraction:
    """A price from decimal text or a fraction "p/q", exact; raises RateError unless it is an amount of at least 0."""
    try:
        price = Fraction(text)
    except (ValueError, ArithmeticError):
        raise RateError(f"{str(text)!r} is not a decimal price") from None
    if price < 0:
        raise RateError(f"{str(text)!r} is not a price: it must be 0 or more")
    return price


def price_of(text: str | Decimal) -> Decimal:
    """A price for people to read: decimal text as it is, a fraction to 28 digits; raises RateError as `exact_price`."""
    price = exact_price(text)
    with localcontext(prec=28, rounding=ROUND_HALF_EVEN):
        return Decimal(price.numerator) / price.denominator if "/" in str(text) else Decimal(text)


def ownership_rate(
    capex: Decimal, years: Decimal, kw: Decimal, pue: Decimal, per_kwh: Decimal, opex_rate: Decimal
) -> Fraction:
    """What an hour of an owned GPU costs: depreciation, power and yearly upkeep, by calendar hour, so idle costs too.

    `capex` is one GPU's purchase price, `opex_rate` the part of it spent on upkeep per year. Raises RateError unless
    the years are positive and nothing is negative.
    """
    terms = [exact_price(term) for term in (capex, years, kw, pue, per_kwh, opex_rate)]
    price, life, power, overhead, energy, upkeep = terms
    if not life:
        raise RateError("a GPU must be owned for more than 0 years")
    return price / (life * YEAR_HOURS) + power * overhead * energy + upkeep * price / YEAR_HOURS


def invoice(gpu_ns: int, per_gpu_hour: Decimal | Fraction) -> int:
    """What `gpu_ns` GPU-nanoseconds cost, in micro-units, rounded half to even."""
    return round(gpu_ns * micro_per_ns(per_gpu_hour))


def amounts(gpu_ns: Sequence[int], per_gpu_hour: Decimal | Fraction) -> list[int]:
    """Each line's cost in micro-units, by largest remainder, so that the sum is the `invoice` of the sum."""
    each = micro_per_ns(per_gpu_hour)
    return round_together([ns * each for ns in gpu_ns])


def micro_per_ns(per_gpu_hour: Decimal | Fraction) -> Fraction:
    """Micro-units per GPU-nanosecond at a price per GPU-hour."""
    price = per_gpu_hour if isinstance(per_gpu_hour, Fraction) else exact_price(per_gpu_hour)
    return price * MICRO / HOUR_NS


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
    return Decimal(half_even(amount * 10**places, tokens * (MICRO // 1000))).scaleb(-places)


def half_even(amount: int, whole: int) -> int:
    """Quotient of integers, rounded half to even."""
    quotient, rest = divmod(amount, whole)
    return quotient + (2 * rest > whole or (2 * rest == whole and quotient % 2 == 1))


def money_text(amount: int, places: int = 6) -> str:
    """An amount in 10⁻ᵖˡᵃᶜᵉˢ units as decimal text, exact."""
    with localcontext(prec=60, rounding=ROUND_HALF_EVEN):
        return f"{Decimal(amount).scaleb(-places):f}"


def find_rate(rates: Sequence[Rate], gpu_type: str, at_ns: int, host: str = "", engine_id: str = "") -> Rate | None:
    """The rate at an instant (UTC ns), or None; the narrowest scope wins: engine, host, GPU type, any.

    Raises RateError for rates that `check_rates` refuses.
    """
    check_rates(rates)
    wanted = {"engine": engine_id, "host": host, "gpu_type": gpu_type, "any": ""}
    for scope in NARROWEST_FIRST:
        for rate in rates:
            if (rate.scope, rate.name) == (scope, wanted[scope]) and holds(rate.from_ns, rate.to_ns, at_ns):
                return rate
    return None


def holds(from_ns: int, to_ns: int | None, at_ns: int) -> bool:
    """Whether [from, to) holds an instant; an open end holds for ever."""
    return from_ns <= at_ns and (to_ns is None or at_ns < to_ns)


def check_rates(rates: Sequence[Rate]) -> None:
    """Raise RateError for a rate that ends before it begins, starts or ends within a minute, or overlaps another."""
    ordered = sorted(rates, key=lambda rate: (rate.scope, rate.name, rate.from_ns))
    for rate in ordered:
        _check_rate(rate)
    for (scope, name), group in groupby(ordered, key=lambda rate: (rate.scope, rate.name)):
        for earlier, later in pairwise(group):
            if earlier.to_ns is None or later.from_ns < earlier.to_ns:
                raise RateError(
                    f"two rates for {rate_name(scope, name)} hold at {later.from_ns}: "
                    f"{earlier.per_gpu_hour} {earlier.currency} and {later.per_gpu_hour} {later.currency}"
                )


def _check_rate(rate: Rate) -> None:
    name = rate_name(rate.scope, rate.name)
    if rate.scope not in NARROWEST_FIRST:
        raise RateError(f"a rate cannot be for {name}; choose from {', '.join(NARROWEST_FIRST)}")
    if rate.to_ns is not None and rate.to_ns < rate.from_ns:
        raise RateError(f"the rate for {name} ends at {rate.to_ns}, before it begins at {rate.from_ns}")
    if rate.from_ns % MINUTE_NS or (rate.to_ns or 0) % MINUTE_NS:
        raise RateError(f"the rate for {name} must start and end on whole minutes")


def rate_name(scope: str, name: str) -> str:
    """What a rate is for, in words."""
    return "any GPU" if scope == "any" else f"{scope.replace('_', ' ')} {name}"
