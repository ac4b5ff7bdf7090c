"""What would go away without each tenant, beside the lines of a bill: a signal that changes no amount."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from ..errors import InputError
from ..events import LEDGER
from . import arrow
from .api_prices import PriceList
from .books import Books
from .line import By, Line, lines_of
from .marginal import MARGINAL_SUMS
from .pricing import Terms, price_ledger
from .published import publish
from .rate_card import RateCard
from .rating import half_even, money_text
from .rollup import LINE_SUMS

if TYPE_CHECKING:
    from .report import Report
    from .teams import Register

PARTS_OF_TENANTS: tuple[By, ...] = ("tier", "phase")
"""What divides a tenant's riders within a step."""
WORDS = (
    "Marginal: what would go away without the tenant, all others riding on. A signal, not a bill: it does not add up."
)
_Keys = tuple[str, ...]


class Marginal(NamedTuple):
    """What would go away with one line; null where it is not known, and why."""

    gpu_ns: int | None
    amount_micro: int | None
    """At the line's own rates; null without a rate."""
    reason: str
    """Why it is not known; empty where it is."""


class MarginalView(NamedTuple):
    """Marginal time of the tenants' lines of one report, by keys."""

    recorded: Mapping[_Keys, Line]
    """The tenants' lines by the ledger of today."""
    covered: Mapping[_Keys, Line]
    """As much of them as steps with a step model tell of."""
    gone: Mapping[_Keys, Line]
    is_closed: bool
    """Whether the report is a closed bill."""

    def of(self, line: Line) -> Marginal | None:
        """What would go away with a tenant's line; None for lines that are no tenant's."""
        if line.account != "tenant":
            return None
        recorded, covered, gone = (_time(lines, line.keys) for lines in (self.recorded, self.covered, self.gone))
        if covered != recorded:
            return Marginal(None, None, f"no steps with a step model for {recorded - covered} GPU·ns")
        if line.amount_micro is None or line.unrated_gpu_ns:
            return Marginal(gone, None, "")
        return Marginal(gone, self.gone[line.keys].amount_micro if gone else 0, "")

    def notes(self, report: Report) -> Iterator[str]:
        """What a reader must know of it, in sentences."""
        pairs = [(line, self.of(line)) for line in report.lines]
        known = [(line.gpu_ns, told.gpu_ns) for line, told in pairs if told is not None and told.gpu_ns is not None]
        used, gone = (sum(values) for values in zip(*known, strict=True)) if known else (0, 0)
        if used:
            part = f"{money_text(half_even(1000 * gone, used), 1)} %"
            yield (
                f"Marginal time is {part} of these tenants' GPU time: the weights that riders share would be"
                " streamed for the others anyway. It is no bill and does not add up to one."
            )
        unknown = sum(told is not None and told.gpu_ns is None for _, told in pairs)
        if unknown:
            yield (
                f"No marginal time on {unknown} line{'s' * (unknown > 1)}: a run without a step model, or whose steps"
                " are not stored, is in it."
            )
        if self.is_closed:
            yield "Marginal time is computed from the steps recorded by now, and is no part of the closed bill."


def check_groups(by: tuple[By, ...]) -> None:
    """Raise InputError unless every tenant line is a whole tenant's, which leaves a step with all it has in it."""
    parts = [name for name in PARTS_OF_TENANTS if name in by]
    if "tenant" in by and not parts:
        return
    what = f"not by {' or '.join(parts)}" if parts else "so --by needs tenant"
    raise InputError(
        f"what would go away is told for whole tenants, {what}: group by tenant, alone or with team, cost_centre,"
        " model, engine, host, gpu_type, day or hour"
    )


def marginal_view(
    report: Report, recorded: pa.Table, marginals: pa.Table, register: Register, *, is_closed: bool
) -> MarginalView:
    """What would go away with the tenants' lines of a report, at its own rates and teams.

    `recorded` is the ledger of the report's period, split as it was recorded; `marginals` are from
    `roll_marginals`. Raises InputError for groups that `check_groups` refuses.
    """
    check_groups(report.by)
    hourly = "hour" in report.by
    terms = Terms(report.period, RateCard(report.card), register, PriceList(()), "separate", hourly)
    tenants = arrow.where(recorded, arrow.equals(recorded, "account", "tenant"))
    ledgers = (tenants, *(_ledger(marginals, name) for name in MARGINAL_SUMS))
    own, covered, gone = (_by_keys(ledger, terms, report.by) for ledger in ledgers)
    return MarginalView(own, covered, gone, is_closed)


def _ledger(marginals: pa.Table, name: str) -> pa.Table:
    """Ledger lines whose GPU time is one of the sums, and nothing else (LEDGER schema)."""
    nothing: Any = pa.array([0] * marginals.num_rows, pa.int64())
    columns: dict[str, Any] = {key: marginals.column(key) for key in LEDGER.key}
    columns |= dict.fromkeys((*LINE_SUMS, "kv_block_ns"), nothing) | {"gpu_ns": marginals.column(name)}
    whole: Any = columns
    return pa.table(whole).select(LEDGER.schema.names).cast(LEDGER.schema)


def _by_keys(ledger: pa.Table, terms: Terms, by: tuple[By, ...]) -> dict[_Keys, Line]:
    priced = price_ledger(Books(ledger, ()), terms)
    lines = lines_of(publish(priced, terms), by, terms.idle_policy, priced.is_priced).lines
    return {line.keys: line for line in lines if line.account == "tenant"}


def _time(lines: Mapping[_Keys, Line], keys: _Keys) -> int:
    return lines[keys].gpu_ns if keys in lines else 0
