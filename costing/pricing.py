"""Pricing: ledger lines become the finest published lines, with amounts that every report only adds up.

Within a slice (a local day of a host's GPUs at one rate) the invoice is rounded once, and the lines of engine, account,
tenant, tier, model, phase and basis get the largest remainder against it. Where a line is looked at more closely (a
team that changed within the day, hours), its amount is shared out among its parts, so no grouping changes an amount.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..events import LEDGER
from . import arrow
from .api_prices import NO_PRICE, PriceList
from .books import Books
from .capacity import Expected, Place, Slice, expected
from .exact import multiply_rounded, share_out
from .grouping import Groups, group
from .idle import IdleRows, reserved_ns, spread_idle
from .in_force import NOTHING, Dated, in_force
from .periods import Period, Span
from .rate_card import NO_RATE, RateCard
from .rating import IdlePolicy, micro_per_ns
from .segments import Ints, Segments
from .teams import Register
from .unwritten import payer_lines, unobserved_lines

SLICE = ("day", "host", "gpu_type", "rate")
LINE = ("engine_id", "account", "tenant_id", "tier", "model", "phase", "basis")
PART = ("price", "member", "hour")
COUNTS = ("gpu_ns", "prompt_tokens", "cached_tokens", "output_tokens", "requests")
_compute: Any = pc


class Terms(NamedTuple):
    """What prices a ledger besides the ledger itself."""

    period: Period
    card: RateCard
    register: Register
    prices: PriceList
    idle_policy: IdlePolicy
    hourly: bool
    """Whether lines are cut by local hours."""


class Parts(NamedTuple):
    """The parts of a period's lines: columns of SLICE, LINE, PART (days, rates and so on as numbers) and COUNTS."""

    table: pa.Table
    groups: Groups


class Priced(NamedTuple):
    """The parts of a period's lines, and what they must add up to."""

    parts: pa.Table
    """Columns of SLICE, LINE, PART (days, rates and so on as numbers), COUNTS, and `amount`, `idle`, `loaded` (what
    includes idle time under a policy that spreads it), `value` (what idle was spread by: the amount, or GPU time where
    no rate is known at all) and `api`, all int64; amounts are 0 where they are not known."""
    expected: Expected
    unobserved: dict[Slice, int]
    """Declared GPU time without a run; negative where the ledger has more time than its runs."""
    engine_rated: dict[Slice, int]
    """Measured GPU time within declared capacity that an engine's own rate prices."""
    rates: frozenset[int]
    """Numbers of the rates in force, `NO_RATE` among them where there is none."""
    is_priced: bool
    """Whether any rate holds."""


def price_ledger(books: Books, terms: Terms) -> Priced:
    """Price the ledger of a period. Raises RateError, TenantError, CapacityError where the books' settings clash."""
    period, card = terms.period, terms.card
    minute = arrow.ints(books.ledger, "minute_ns")
    ledger = arrow.where(books.ledger, (minute >= period.from_ns) & (minute < period.to_ns))
    paid = expected(period, books.runs, books.capacities, card)
    unobserved, engine_rated = _compare(ledger, paid, terms)
    parts = _parts(ledger, terms, paid, unobserved)
    rates = frozenset(parts.groups.keys["rate"].tolist()) | {part.rate for part in [*paid.declared_ns, *paid.walls_ns]}
    is_priced = bool(rates - {NO_RATE}) or (not rates and bool(card.rates))
    return Priced(_with_amounts(parts, terms, paid, is_priced), paid, unobserved, engine_rated, rates, is_priced)


def _days(ledger: pa.Table, spans: Sequence[Span]) -> Ints:
    """Number of the span in which each line's minute lies (int64[rows])."""
    starts = np.array([span.from_ns for span in spans], np.int64)
    return np.searchsorted(starts, arrow.ints(ledger, "minute_ns"), "right") - 1


def _compare(ledger: pa.Table, paid: Expected, terms: Terms) -> tuple[dict[Slice, int], dict[Slice, int]]:
    """Declared time without a run by slice, and what of the measured time has a rate of its own engine.

    Time beyond what is declared is taken out at the instants at which it happens, so that it never fills a gap.
    """
    unobserved: dict[Slice, int] = dict(paid.declared_ns + paid.excess_ns)
    engine_rated: dict[Slice, int] = {}
    if not paid.declared:
        return unobserved, engine_rated
    places = sorted(paid.declared)
    place = _places(ledger, places)
    spans = [Dated(n, n, part.from_ns, part.to_ns) for n, name in enumerate(places) for part in paid.declared[name]]
    rows = np.flatnonzero(in_force(spans, place, arrow.ints(ledger, "minute_ns")) != NOTHING)
    base, own, day = terms.card.of(ledger, engines=False), terms.card.of(ledger), _days(ledger, terms.period.days())
    keys, of = np.unique(np.stack([day, place, base, own])[:, rows], axis=1, return_inverse=True)
    sums = np.zeros(keys.shape[1], np.int64)
    np.add.at(sums, of.reshape(-1), arrow.ints(ledger, "gpu_ns")[rows])
    for (at, where, rate, engine), gpu_ns in zip(keys.T.tolist(), sums.tolist(), strict=True):
        slice_ = Slice(at, places[where], rate)
        unobserved[slice_] = unobserved.get(slice_, 0) - gpu_ns
        if engine != rate:
            rated = Slice(at, places[where], engine)
            engine_rated[rated] = engine_rated.get(rated, 0) + gpu_ns
            engine_rated[slice_] = engine_rated.get(slice_, 0) - gpu_ns
    return unobserved, engine_rated


def _places(ledger: pa.Table, places: list[Place]) -> Ints:
    """Number of each line's place (int64[rows]), `NOTHING` where it is none of them."""
    hosts, types = sorted({place.host for place in places}), sorted({place.gpu_type for place in places})
    number = np.full((len(hosts) + 1, len(types) + 1), NOTHING, np.int64)
    for at, place in enumerate(places):
        number[hosts.index(place.host), types.index(place.gpu_type)] = at
    return number[arrow.codes(ledger, "host", hosts), arrow.codes(ledger, "gpu_type", types)]


def _parts(ledger: pa.Table, terms: Terms, paid: Expected, unobserved: dict[Slice, int]) -> Parts:
    """The ledger's lines and those that no run wrote, summed by SLICE, LINE and PART, in that order."""
    days, rate = terms.period.days(), terms.card.of(ledger)
    payers = payer_lines(terms.idle_policy, ledger, _days(ledger, days), rate, terms.register, paid, days)
    more = [*unobserved_lines(unobserved, days), *payers]
    own = LEDGER.to_arrow([each.line for each in more])
    lines = pa.concat_tables([ledger.select(own.column_names), own], promote_options="default")
    is_tenant = arrow.equals(lines, "account", "tenant")
    numbers: dict[str, Ints] = {
        "day": _days(lines, days),
        "rate": np.append(rate, np.array([each.rate for each in more], np.int64)),
        "price": np.where(is_tenant, terms.prices.of(lines), NO_PRICE),
        "member": np.where(is_tenant, terms.register.of(lines), NOTHING),
        "hour": _hours(lines, ledger.num_rows, terms),
    }
    keys = (*SLICE, *LINE, *PART)
    groups = group({name: numbers[name] if name in numbers else arrow.ranks(lines, name) for name in keys})
    columns: Any = {name: arrow.texts(lines, name, groups.first) for name in keys if name not in numbers}
    columns |= {name: pa.array(groups.keys[name]) for name in numbers}
    columns |= {name: pa.array(groups.sum(arrow.counts(lines, name))) for name in COUNTS}
    return Parts(pa.table(columns), groups)


def _hours(lines: pa.Table, measured: int, terms: Terms) -> Ints:
    """Number of each line's hour (int64[rows]), `NOTHING` for lines that no run wrote, which are no hour's."""
    hours = np.full(lines.num_rows, NOTHING, np.int64)
    if terms.hourly:
        hours[:measured] = _days(lines, terms.period.hours())[:measured]
    return hours


def _with_amounts(parts: Parts, terms: Terms, paid: Expected, is_priced: bool) -> pa.Table:
    """The parts with what each costs, gains by idle, and would cost by the token."""
    table, lines = parts.table, parts.groups.of_equal((*SLICE, *LINE))
    gpu_ns = arrow.ints(table, "gpu_ns")
    amounts = _amounts(parts, lines, terms.card)
    values = amounts if is_priced else lines.sum(gpu_ns)
    loaded = share_out(values + _idle(parts, lines, terms, paid, values, is_priced), gpu_ns, lines)
    amount = share_out(amounts, gpu_ns, lines)
    value = amount if is_priced else gpu_ns
    idle = loaded - value if terms.idle_policy != "separate" else np.zeros_like(value)
    columns = {"amount": amount, "idle": idle, "value": value, "loaded": loaded, "api": _api(parts, terms.prices)}
    for name, column in columns.items():
        array: Any = pa.array(column)
        table = table.append_column(name, array)
    return table


def _within(outer: Segments, inner: Segments) -> Segments:
    """`outer` segments of parts as segments of what `inner` ones make of them."""
    return Segments.from_labels(outer.of[inner.starts])


def _amounts(parts: Parts, lines: Segments, card: RateCard) -> Ints:
    """What each line's time costs (int64[lines]), rounded together within its slice; 0 without a rate."""
    gpu_ns, rate = lines.sum(arrow.ints(parts.table, "gpu_ns")), parts.groups.keys["rate"][lines.starts]
    amounts = np.zeros_like(gpu_ns)
    for start, end in pairwise(np.append(_within(parts.groups.of_equal(SLICE), lines).starts, len(gpu_ns))):
        if rate[start] != NO_RATE:
            each = [micro_per_ns(card.prices[rate[start]])]
            amounts[start:end] = multiply_rounded(gpu_ns[start:end], each, np.zeros(int(end - start), np.int64))
    return amounts


def _idle(parts: Parts, lines: Segments, terms: Terms, paid: Expected, values: Ints, is_priced: bool) -> Ints:
    """What each line gains or gives by idle (int64[lines]); under `separate` what it would by busy time."""
    policy = "weighted" if terms.idle_policy == "separate" else terms.idle_policy
    place_days, slices = (_within(parts.groups.of_equal(names), lines) for names in (SLICE[:3], SLICE))
    is_tenant, is_idle = (arrow.equals(parts.table, "account", name)[lines.starts] for name in ("tenant", "idle"))
    busy_ns = lines.sum(arrow.ints(parts.table, "gpu_ns"))
    carries = (parts.groups.keys["rate"][lines.starts] != NO_RATE) | (not is_priced)
    is_unwritten = arrow.equals(parts.table, "engine_id", "")[lines.starts]
    idle_beside = slices.sum(np.where(is_idle, values, 0))[slices.of]
    rows = IdleRows(
        place_days,
        np.where(is_tenant, parts.groups.keys["tenant_id"][lines.starts], NOTHING),
        is_idle,
        busy_ns,
        values,
        np.where(is_unwritten, idle_beside, np.where(carries, busy_ns, 0)),
    )
    reserved: dict[tuple[int, int], int] = {}
    if policy == "reservation":
        reserved = _reserved(parts.table, terms, paid, lines.starts[place_days.starts])
    return spread_idle(policy, rows, reserved)


def _reserved(table: pa.Table, terms: Terms, paid: Expected, starts: Ints) -> dict[tuple[int, int], int]:
    """GPU-nanoseconds reserved on the places and days that start at these rows, by their number and tenant code."""
    column: Any = table.column("tenant_id")
    code = {name: rank for rank, name in enumerate(sorted(_compute.unique(column).to_pylist()))}
    days = terms.period.days()
    found: dict[tuple[int, int], int] = {}
    at: Any = pa.array(starts)
    rows: list[dict[str, Any]] = table.select(list(SLICE[:3])).take(at).to_pylist()
    for number, row in enumerate(rows):
        up = paid.up.get(Place(row["host"], row["gpu_type"]), [])
        for tenant, gpu_ns in reserved_ns(terms.register.rows, up, days[int(row["day"])]).items():
            if tenant in code:
                found[number, code[tenant]] = gpu_ns
    return found


def _api(parts: Parts, prices: PriceList) -> Ints:
    """What each part's tokens would cost by the token (int64[parts]), rounded together within its slice."""
    number = parts.groups.keys["price"]
    if not prices.prices:
        return np.zeros_like(number)
    steps = prices.steps(number, *(arrow.ints(parts.table, name) for name in COUNTS[1:4]))
    lines = parts.groups.of_equal((*SLICE, *LINE, "price"))
    total, per_line = lines.sum(steps), number[lines.starts]
    amounts = np.zeros_like(total)
    each = [terms.step for terms in prices.terms]
    for start, end in pairwise(np.append(_within(parts.groups.of_equal(SLICE), lines).starts, len(total))):
        amounts[start:end] = multiply_rounded(total[start:end], each, per_line[start:end])
    return share_out(amounts, steps, lines)
