"""The report: who used the GPUs in a period, what it costs, and whether the lines add up to the invoice."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

import pyarrow as pa
import pyarrow.compute as pc

from ..errors import InputError
from ..events import Rate, TokenPrice
from . import arrow
from .api_prices import PriceList
from .books import Books, all_time
from .budgets import BudgetStatus, overlapping, status_of
from .capacity import Slice
from .cell import PricedCell, cells_from_arrow, cells_to_arrow
from .closing_notes import closed_as, remarks_of
from .conflicts import Conflict, shared_devices
from .corrections import Correction, corrected_cells, corrections
from .line import COLUMNS, By, Line, lines_of, parts_of_one, sum_lines
from .notes import notes_of, problems_of
from .periods import Period
from .places import PlaceTime, places_of
from .pricing import Priced, Terms, price_ledger
from .published import publish
from .rate_card import NO_RATE, RateCard
from .rating import IdlePolicy, invoice, price_of
from .teams import Register

if TYPE_CHECKING:
    from .marginal_view import MarginalView

__all__ = ["COLUMNS", "By", "Line", "PricedCell", "Report", "build_report"]

GPU_MS = "GPU-ms"
_compute: Any = pc


class Unpriced(NamedTuple):
    """Tokens of a model and tier that have no price by the token."""

    model: str
    tier: str
    tokens: int


@dataclass(frozen=True)
class Report:
    """Lines that add up, and by how much they do not."""

    by: tuple[By, ...]
    period: Period
    idle_policy: IdlePolicy
    policy: str
    """The rule that split the steps."""
    is_priced: bool
    """Whether any rate holds; if not, lines carry GPU time and no money."""
    rates: tuple[Rate, ...]
    """The rates used."""
    card: tuple[Rate, ...]
    """All rates that were to be had."""
    prices: tuple[TokenPrice, ...]
    """All token prices that were to be had, in one currency."""
    currency: str
    lines: tuple[Line, ...]
    """The finest lines, by account and keys."""
    tenants: Line
    """Sum of the tenants' lines."""
    total: Line
    """Sum of all lines."""
    wall_gpu_ns: int
    """What the lines must add up to: declared capacity, elsewhere the runs' walls × their GPUs, and corrections."""
    invoice_micro: int | None
    """What that costs; null where nothing has a rate."""
    basis: tuple[tuple[str, Decimal], ...]
    """Part of the money (or, without rates, of the GPU time) that rests on each basis or is unobserved; sums to 1."""
    places: tuple[PlaceTime, ...]
    """Declared and measured time of each host's GPUs."""
    conflicts: tuple[Conflict, ...]
    """Runs that claim more GPUs than are declared, or the same device at once."""
    api_currency: str | None
    """Currency of what tokens would cost by the token; null: none has a price."""
    other_api_currencies: tuple[str, ...]
    """Currencies of token prices that hold, but cannot be added to those in `api_currency`."""
    unpriced: tuple[Unpriced, ...]
    """What has no price by the token; empty where there is no price list at all."""
    budgets: tuple[BudgetStatus, ...]
    closed_as: str | None
    """The closed period in which this one lies; its frozen bill is the one that stands."""
    remarks: tuple[str, ...]
    """What closings have to do with this bill, in sentences."""
    seen_ns: int
    """The end of the newest minute that something is known of, UTC; 0 where nothing is."""
    labels: dict[By, dict[str, str]]
    """What to print for tenants and teams that are called otherwise than their key."""
    cell_table: pa.Table = field(repr=False)
    """The cells as columns."""
    marginal: MarginalView | None = field(default=None, repr=False)
    """What would go away without each tenant, where that was asked for: a signal beside the bill."""

    @cached_property
    def cells(self) -> tuple[PricedCell, ...]:
        """The finest lines there are; every line is a sum of them."""
        return cells_from_arrow(self.cell_table)

    @property
    def from_ns(self) -> int:
        """Start of the period, UTC."""
        return self.period.from_ns

    @property
    def to_ns(self) -> int:
        """End of the period, UTC."""
        return self.period.to_ns

    @property
    def rate(self) -> Decimal | None:
        """Price of a GPU-hour where there is just one; null: none, or several."""
        prices = {rate.per_gpu_hour for rate in self.rates}
        return price_of(prices.pop()) if len(prices) == 1 else None

    @cached_property
    def correction_rates(self) -> dict[str, tuple[str, ...]]:
        """The prices of a GPU-hour at which each closed period is corrected here, as they were written."""
        pairs = self.cell_table.select(["correction_of", "rate"]).group_by(["correction_of", "rate"]).aggregate([])
        found: defaultdict[str, list[str]] = defaultdict(list)
        for closed, rate in sorted(zip(*(column.to_pylist() for column in pairs.columns), strict=True), key=str):
            if closed and rate is not None:
                found[closed].append(rate)
        return {closed: tuple(rates) for closed, rates in found.items()}

    @property
    def unit(self) -> str:
        """Unit of the prices per 1000 tokens: the currency, or GPU milliseconds where there is no rate."""
        return self.currency if self.is_priced else GPU_MS

    @property
    def residual_gpu_ns(self) -> int:
        """GPU time of all lines minus what they must add up to; 0 when everything adds up."""
        return self.total.gpu_ns - self.wall_gpu_ns

    @property
    def residual_micro(self) -> int | None:
        """Amount of all lines minus the invoice; 0 when everything adds up, null where nothing has a rate."""
        if self.total.amount_micro is None or self.invoice_micro is None:
            return None
        return self.total.amount_micro - self.invoice_micro

    def account(self, name: str) -> Line:
        """Sum of an account's lines."""
        return sum_lines(name, [line for line in self.lines if line.account == name], len(self.by))

    def label(self, by: By, key: str) -> str:
        """What to print for a key."""
        return self.labels.get(by, {}).get(key, key)

    def check(self) -> tuple[str, ...]:
        """What does not add up, in sentences; empty when the lines equal what is paid, in time and money."""
        return problems_of(self)

    def notes(self) -> tuple[str, ...]:
        """What a reader must know to trust the numbers, in sentences."""
        return notes_of(self)


def build_report(
    books: Books,
    period: Period | None = None,
    by: Sequence[By] = ("tenant",),
    idle_policy: IdlePolicy = "separate",
    rate: Decimal | None = None,
    currency: str | None = None,
    policy: str = "roofline",
) -> Report:
    """The bill of a period, by default of all there is (in UTC), grouped by account and `by`.

    `rate` (per GPU-hour, in `currency`, else USD) stands in for the books' rates. `policy` names the rule that split
    the steps of the books' ledger. Raises InputError for an unknown group, for settings that overlap, and where rates
    are in different currencies, or in another one than `currency`.
    """
    groups = _groups(by)
    period = period or all_time(books.runs, _minutes(books.ledger))
    card = RateCard(books.rates) if rate is None else RateCard.single(rate, currency or "USD")
    register = Register(books.tenants, books.renames)
    terms = Terms(period, card, register, PriceList(books.prices), idle_policy, "hour" in groups)
    priced = price_ledger(books, terms)
    used = card.used(priced.rates)
    bill_currency = card.currency(used, currency)
    found = corrections(books, period, policy)
    api = _api_currencies(terms.prices, priced, found, bill_currency)
    if api.others:
        terms = terms._replace(prices=terms.prices.only(api.own or bill_currency))
        priced = price_ledger(books, terms)
    cells = publish(priced, terms)
    corrected = corrected_cells(found, bill_currency, api.own)
    table = _with_corrections(cells, corrected)
    lines = lines_of(table, groups, idle_policy, priced.is_priced)
    owed = sum(cell.amount_micro or 0 for cell in corrected)
    paid = _paid(priced)
    return Report(
        by=groups,
        period=period,
        idle_policy=idle_policy,
        policy=policy,
        is_priced=priced.is_priced,
        rates=used,
        card=card.rates,
        prices=terms.prices.only(api.own or bill_currency).prices,
        currency=bill_currency,
        lines=lines.lines,
        tenants=lines.tenants,
        total=lines.total,
        wall_gpu_ns=paid.total() + sum(cell.gpu_ns for cell in corrected),
        invoice_micro=_invoice(paid, card) + owed if priced.is_priced else None,
        basis=_basis(cells),
        places=places_of(priced, period, books.runs),
        conflicts=(*priced.expected.excess, *shared_devices(books.runs, period)),
        api_currency=api.own,
        other_api_currencies=api.others,
        unpriced=_unpriced(table) if books.prices else (),
        budgets=_budgets(books, terms, bill_currency),
        closed_as=closed_as(books, period),
        remarks=remarks_of(books, period),
        seen_ns=books.seen_ns,
        labels={"team": register.team_labels(), "tenant": register.tenant_labels(period.to_ns)},
        cell_table=table,
    )


def _groups(by: Sequence[By]) -> tuple[By, ...]:
    unknown = [name for name in by if name not in COLUMNS]
    if unknown:
        raise InputError(f"cannot group by {', '.join(unknown)}; choose from {', '.join(get_args(By))}")
    if not by:
        raise InputError("a report needs something to group by")
    return tuple(dict.fromkeys(by))


def _minutes(ledger: pa.Table) -> tuple[int, int] | None:
    """The minutes of a ledger's first and last line; None without lines."""
    minutes = arrow.ints(ledger, "minute_ns")
    return (int(minutes.min()), int(minutes.max())) if len(minutes) else None


def _paid(priced: Priced) -> Counter[Slice]:
    """GPU time to be paid, by slice."""
    total = Counter(priced.expected.walls_ns)
    for slices in (priced.expected.declared_ns, priced.engine_rated):
        for slice_, gpu_ns in slices.items():
            total[slice_] += gpu_ns
    return total


def _invoice(paid: Counter[Slice], card: RateCard) -> int:
    return sum(invoice(gpu_ns, card.prices[part.rate]) for part, gpu_ns in paid.items() if part.rate != NO_RATE)


def _with_corrections(cells: pa.Table, corrected: Sequence[PricedCell]) -> pa.Table:
    """The period's own cells and what corrects closed ones."""
    if not corrected:
        return cells
    extra: Any = cells_to_arrow(list(corrected))
    loaded = [(cell.amount_micro or 0) + (cell.idle_micro or 0) for cell in corrected]
    columns: dict[str, Any] = {
        "hour": arrow.same("", len(corrected)),
        "value": extra.column("amount_micro").fill_null(0),
        "loaded": pa.array(loaded, pa.int64()),
        "unrated_gpu_ns": pa.array([cell.gpu_ns if cell.rate is None else 0 for cell in corrected], pa.int64()),
        "free_tokens": pa.array([0] * len(corrected), pa.int64()),
    }
    for name, column in columns.items():
        extra = extra.append_column(name, column)
    return pa.concat_tables([cells, extra.select(cells.column_names)])


def _basis(cells: pa.Table) -> tuple[tuple[str, Decimal], ...]:
    """What the money rests on, the largest part first; the time where there is no money."""
    is_observed = _compute.not_equal(cells.column("account"), "unobserved")
    basis = _compute.if_else(is_observed, cells.column("basis"), "unobserved")
    sums: Counter[str] = Counter()
    for name in ("value", "gpu_ns"):
        columns: Any = {"basis": basis, "part": cells.column(name)}
        rows = arrow.total_by(pa.table(columns), ("basis",)).to_pylist()
        sums = Counter({row["basis"]: row["part"] for row in rows if row["part"]})
        if sums:
            break
    used = sorted(sums.items(), key=lambda item: (-item[1], item[0]))
    shares = parts_of_one([part for _, part in used])
    return tuple((name, share) for (name, _), share in zip(used, shares, strict=True) if share is not None)


class _ApiCurrencies(NamedTuple):
    own: str | None
    others: tuple[str, ...]


def _api_currencies(prices: PriceList, priced: Priced, found: Sequence[Correction], currency: str) -> _ApiCurrencies:
    """The one currency of what tokens would cost: that of all prices that hold, where they differ the bill's own."""
    held = prices.currencies(arrow.ints(priced.parts, "price").tolist())
    held |= {correction.api_currency for correction in found if correction.api_currency}
    if len(held) < 2:
        return _ApiCurrencies(next(iter(held), None), ())
    return _ApiCurrencies(currency if currency in held else None, tuple(sorted(held - {currency})))


def _unpriced(cells: pa.Table) -> tuple[Unpriced, ...]:
    rows = arrow.total_by(cells.select(["model", "tier", "unpriced_tokens"]), ("model", "tier")).to_pylist()
    return tuple(
        sorted(
            Unpriced(**dict(zip(Unpriced._fields, row.values(), strict=True))) for row in rows if row["unpriced_tokens"]
        )
    )


def _budgets(books: Books, terms: Terms, currency: str) -> tuple[BudgetStatus, ...]:
    """How the budgets stand whose periods share time with the report's."""
    seen_ns = max(chain((run.wall_end_ns for run in books.runs), [0]))
    found: list[BudgetStatus] = []
    spending: dict[Period, dict[str, Line]] = {}
    for budget, period in overlapping(books.budgets, terms.period):
        if period not in spending:
            own = terms._replace(period=period, hourly=False)
            priced = price_ledger(books, own)
            lines = lines_of(publish(priced, own), ("team",), terms.idle_policy, priced.is_priced)
            spending[period] = {line.keys[0]: line for line in lines.lines if line.account == "tenant"}
        line = spending[period].get(budget.team, Line("tenant", (budget.team,), billed_micro=0))
        spent = None if line.unrated_gpu_ns else line.billed_micro
        found.append(status_of(budget, spent, currency, seen_ns))
    return tuple(found)
