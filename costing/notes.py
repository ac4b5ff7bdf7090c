"""What a reader must know to trust a report, in sentences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING

from . import arrow
from .periods import local_text
from .rating import HOUR_NS, money_text, price_of, rate_name

if TYPE_CHECKING:
    from ..events import Rate
    from .conflicts import Conflict
    from .places import PlaceTime
    from .report import Report

BASIS_WORDS = {"step": "single steps", "interval": "scraped intervals", "estimated": "estimates", "": "declarations"}
NAMED = 4
"""So many names are told; of more only the number."""


def problems_of(report: Report) -> tuple[str, ...]:
    """What does not add up; empty when everything does."""
    problems = [_excess(place, report) for place in report.places if place.excess_gpu_ns]
    twice = [each for each in report.conflicts if each.gpu_uuids and not _is_declared(each, report)]
    if twice:
        told = _some([_shared(each, report) for each in twice], "; ")
        charged = hours(sum(each.gpu_ns for each in twice))
        problems.append(
            f"{told}: {charged} GPU·h are charged more than once. Declare what you pay for with farebox hosts add."
        )
    if report.residual_gpu_ns:
        against = "declared capacity" if any(p.declared_gpu_ns for p in report.places) else "the runs' wall clocks"
        problems.append(f"The lines are {report.residual_gpu_ns:+,} GPU·ns off {against}.")
    if report.residual_micro:
        off = money_text(abs(report.residual_micro))
        side = "above" if report.residual_micro > 0 else "below"
        problems.append(f"The lines are {off} {report.currency} {side} the invoice.")
    billed, amount = report.total.billed_micro, report.total.amount_micro
    if billed is not None and amount is not None and billed != amount:
        off = money_text(abs(billed - amount))
        problems.append(f"Spreading idle time changed the total by {off} {report.currency}.")
    return tuple(problems)


def _excess(place: PlaceTime, report: Report) -> str:
    """More measured than declared: by how much, when, and by whom."""
    told = [
        f"{each.excess_gpus} GPU{'s' * (each.excess_gpus > 1)} too many from {_span(each, report)} ({_some(each.runs)})"
        for each in report.conflicts
        if not each.gpu_uuids and (each.host, each.gpu_type) == (place.host, place.gpu_type)
    ]
    sum_ = f"{_place(place)}: {hours(place.excess_gpu_ns)} GPU·h more measured than declared"
    return f"{sum_}: {_some(told, '; ')}." if told else f"{sum_}."


def _shared(conflict: Conflict, report: Report) -> str:
    """Which device several runs had at once, when and who."""
    runs = f"{_some(conflict.runs)} at once from {_span(conflict, report)}"
    return f"{conflict.host}: {_some(conflict.gpu_uuids)} was used by {runs}"


def _is_declared(conflict: Conflict, report: Report) -> bool:
    """Whether capacity is declared where a device is shared: then the invoice does not rest on the runs' walls."""
    place = next((p for p in report.places if (p.host, p.gpu_type) == (conflict.host, conflict.gpu_type)), None)
    return place is not None and place.declared_gpu_ns > 0 and not place.walls_gpu_ns


def _span(conflict: Conflict, report: Report) -> str:
    return f"{clock(conflict.from_ns, report)} to {clock(conflict.to_ns, report)}"


def notes_of(report: Report) -> tuple[str, ...]:
    """Rates, methods, capacity, what the money rests on, prices by the token, budgets."""
    parts = (
        _rates(report),
        _method(report),
        () if report.marginal is None else report.marginal.notes(report),
        _so_far(report),
        _capacity(report.places, report),
        _sharing(report),
        _basis(report),
        _api(report),
        _cached(report),
        _budgets(report),
    )
    return tuple(sentence for part in parts for sentence in part)


def hours(gpu_ns: int) -> str:
    """GPU-nanoseconds as hours with three decimal places."""
    return money_text(round(Fraction(gpu_ns * 1000, HOUR_NS)), 3)


def _rates(report: Report) -> Iterator[str]:
    """The rates that this bill was made with, and no others."""
    if not report.is_priced:
        yield f"No rate: lines show GPU time, and {report.unit} per 1k tokens."
        return
    rates = report.rates
    if not rates:
        yield "No GPU was paid for in this period, so no rate was used."
    elif len(rates) == 1:
        yield f"{_price(rates[0].per_gpu_hour)} {report.currency} per GPU-hour{_origin(rates[0])}."
    else:
        listed = [
            f"{_price(rate.per_gpu_hour)} for {rate_name(rate.scope, rate.name)}{_since(rate, report)}"
            for rate in rates
        ]
        yield f"{report.currency} per GPU-hour: {_some(listed)}."
    for closed, prices in report.correction_rates.items():
        yield f"{_some([*map(_price, prices)])} {report.currency} per GPU-hour for the correction of {closed}."
    if report.total.unrated_gpu_ns:
        yield f"No rate for {hours(report.total.unrated_gpu_ns)} GPU·h: totals are lower bounds (≥)."


def _price(per_gpu_hour: str) -> str:
    price = price_of(per_gpu_hour)
    return f"{price:.6f}" if "/" in per_gpu_hour else f"{price:f}"


def _origin(rate: Rate) -> str:
    told = [*(["cost of ownership"] if rate.terms else []), *([rate.note] if "example" in rate.note.lower() else [])]
    return f" ({', '.join(told)})" if told else ""


def _since(rate: Rate, report: Report) -> str:
    if rate.from_ns <= report.from_ns:
        return ""
    return f" from {clock(rate.from_ns, report)}"


def clock(at_ns: int, report: Report) -> str:
    """An instant on the clock of the report's zone."""
    return local_text(at_ns, report.period.tz)


def _method(report: Report) -> Iterator[str]:
    if report.policy != "roofline":
        yield f"Steps are split by the policy {report.policy}."
    yield from report.remarks


def _so_far(report: Report) -> Iterator[str]:
    """How much of a period is known that is not over."""
    seen_ns = report.seen_ns
    if not seen_ns or report.to_ns <= seen_ns:
        return
    declared = any(place.declared_gpu_ns for place in report.places)
    tail = ": what is declared after it counts as unobserved until events arrive" if declared else ""
    if seen_ns <= report.from_ns:
        yield f"Nothing is known of this period: the newest event is from {clock(seen_ns, report)}{tail}."
    else:
        yield f"So far, to {clock(seen_ns, report)}; the rest is provisional{tail}."


def _capacity(places: Sequence[PlaceTime], report: Report) -> Iterator[str]:
    declared = [place for place in places if place.declared_gpu_ns]
    bare = [_place(place) for place in places if not place.declared_gpu_ns]
    if not declared:
        yield "No declared capacity: the runs' walls stand in for it."
    elif bare:
        yield f"No declared capacity for {_some(bare)}: the runs' walls stand in for it."
    for place in declared:
        if place.walls_gpu_ns:
            yield (
                f"{_place(place)}: capacity data is missing for {hours(place.walls_gpu_ns)} GPU·h of its runs; "
                "their walls stand in for it."
            )
        if place.unobserved_gpu_ns:
            yield f"{_place(place)}: {hours(place.unobserved_gpu_ns)} GPU·h declared without a run, as unobserved."
    for place in places:
        if place.last_seen_ns is not None:
            yield f"{_place(place)}: last seen {clock(place.last_seen_ns, report)}."


def _sharing(report: Report) -> Iterator[str]:
    shared = [each for each in report.conflicts if each.gpu_uuids and _is_declared(each, report)]
    if shared:
        told = _some([_shared(each, report) for each in shared], "; ")
        yield f"{told}: each is measured as if alone, and what is declared is paid."


def _place(place: PlaceTime) -> str:
    return f"{place.host} ({place.gpu_type})"


def _some(names: Sequence[str], between: str = ", ") -> str:
    told = between.join(names[:NAMED])
    return told if len(names) <= NAMED else f"{told} and {len(names) - NAMED} more"


def _basis(report: Report) -> Iterator[str]:
    rests = ", ".join(f"{_percent(share)} {BASIS_WORDS.get(basis, basis)}" for basis, share in report.basis if basis)
    if rests:
        yield f"Rests on: {rests}."


def _percent(share: Decimal) -> str:
    """A part in percent; what is above nothing is never told as nothing, nor what is below all as all."""
    if 0 < share < Decimal("0.0005"):
        return "<0.1 %"
    return ">99.9 %" if Decimal("0.9995") <= share < 1 else f"{share * 100:.1f} %"


def _api(report: Report) -> Iterator[str]:
    missing = report.unpriced
    if report.other_api_currencies:
        others, own = " and ".join(report.other_api_currencies), report.api_currency or report.currency
        yield f"Token prices in {others} cannot be added to {own}: what has no other price has none here."
    if report.tenants.api_micro is None and not missing:
        return
    amount = "no price"
    if report.tenants.api_micro is not None:
        bound = "≥ " if missing else ""
        amount = f"{bound}{money_text(report.tenants.api_micro)} {report.api_currency}"
    models = len({(each.model, each.tier) for each in missing})
    names = _some([f"{each.model} {each.tier}: {each.tokens:,} tokens".replace("  ", " ") for each in missing])
    told = f" ({models} model{'s' * (models > 1)} unpriced: {names})" if missing else ""
    yield f"The same tokens by the token: {amount}{told}."


def _cached(report: Report) -> Iterator[str]:
    """Tenants of whom a source told more cached tokens than prompt tokens, which cannot be."""
    cells = report.cell_table
    over = arrow.ints(cells, "cached_tokens") - arrow.ints(cells, "prompt_tokens")
    odd = (over > 0) & arrow.equals(cells, "correction_of", "")
    found: Counter[str] = Counter()
    tenants = map(str, arrow.where(cells, odd).column("tenant_id").to_pylist())
    for tenant, tokens in zip(tenants, over[odd].tolist(), strict=True):
        found[tenant] += tokens
    if found:
        names = [f"{tenant}: {tokens:,}" for tenant, tokens in sorted(found.items())]
        yield f"{_some(names)} more cached than prompt tokens; the prompt is priced as all cached."


def _budgets(report: Report) -> Iterator[str]:
    for status in report.budgets:
        budget = status.budget
        name = f"Budget of {budget.team} for {budget.period}"
        if status.spent_micro is None:
            yield f"{name}: spending is not known, {status.reason}."
            continue
        limits = [
            f"{kind} {money_text(limit)}" + (f" reached on {day}" if day and status.spent_micro <= limit else "")
            for kind, limit, day in (
                ("soft", budget.soft_micro, status.soft_day),
                ("hard", budget.hard_micro, status.hard_day),
            )
            if limit is not None
        ]
        pace = "" if status.per_day_micro is None else f", {money_text(status.per_day_micro)} a day"
        spent = f"{money_text(status.spent_micro)} {budget.currency} spent{pace}"
        yield f"{name}: {status.state}, {spent}; {', '.join(limits)}."
