"""Money for the eye: integer micro-units and Decimal, never a float."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import ROUND_HALF_EVEN, Decimal
from fractions import Fraction

from ..costing.apportion import round_together

HOUR_NS = 3_600_000_000_000
MICRO = 1_000_000
_SIGNS = {"USD": "$", "EUR": "€", "GBP": "£", "JPY": "¥"}


def sign(currency: str) -> str:
    """`$` for USD; a code that has no sign of its own keeps its name and a space."""
    return _SIGNS.get(currency, f"{currency} ")


def hourly_micro(per_gpu_hour: Decimal, gpus: int) -> int:
    """Price of one hour of the replica, in micro-units, half-even."""
    return int((per_gpu_hour * gpus * MICRO).to_integral_value(ROUND_HALF_EVEN))


def per_1k(gpu_ns: int, tokens: int, per_gpu_hour: Decimal | None) -> Decimal | None:
    """Cost of 1000 tokens: in money with a rate, else in GPU-ms. None when there were no tokens.

    `gpu_ns` in GPU·ns, `per_gpu_hour` in currency per GPU·h.
    """
    if tokens <= 0:
        return None
    if per_gpu_hour is None:
        return Decimal(gpu_ns) / (1000 * tokens)
    return per_gpu_hour * gpu_ns * 1000 / (HOUR_NS * tokens)


def decimals(total_micro: int) -> int:
    """Decimals that show an hourly amount sensibly: cents, or more when the whole is below one unit."""
    return 2 if total_micro >= MICRO else 4


def rounded(amounts: Sequence[int], places: int) -> list[int]:
    """Micro amounts as units of 10⁻ᵖˡᵃᶜᵉˢ whose sum is the rounded sum, so that what is shown adds up."""
    grain = 10 ** (6 - places)
    return round_together([Fraction(amount, grain) for amount in amounts])


def text(units: int, places: int) -> str:
    """Units of 10⁻ᵖˡᵃᶜᵉˢ as decimal text: `text(429, 2)` is `4.29`."""
    return str(Decimal(units).scaleb(-places))


def amount(micro: int, places: int) -> str:
    """A micro amount on its own as decimal text; what stands in a sum is `rounded` with it."""
    return text(rounded([micro], places)[0], places)


def unit_per_1k(unit: str) -> str:
    """What a per-1k figure is shown in: thousandths of a currency, `m$`, or GPU-ms."""
    return unit if unit == "GPU-ms" else f"m{sign(unit).strip()}"


def price(per_hour: str) -> str:
    """A rate as people write it: at least two decimals, no trailing zeros beyond them."""
    value = Decimal(per_hour).normalize()
    places = max(2, -int(value.as_tuple().exponent))
    return f"{value:.{places}f}"


def figure(value: Decimal | None, milli: bool) -> str:
    """A per-1k figure in three significant digits; `milli`: in thousandths, so 0.000107 is `0.107`. None is `–`."""
    if value is None:
        return "–"
    shown = value * 1000 if milli else value
    if shown == 0:
        return "0"
    if shown < Decimal("0.001"):
        return "<.001"
    for places, limit in ((3, 1), (2, 10), (1, 100), (0, 100_000)):
        if round(shown, places) < limit:
            return f"{shown:.{places}f}"
    return f"{shown / 1000:.0f}k"
