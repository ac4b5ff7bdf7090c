"""The lines of a report: cells added up by the columns that a reader asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from . import arrow
from .apportion import apportion
from .rating import MICRO, IdlePolicy, per_1k

By = Literal["tenant", "team", "cost_centre", "tier", "model", "engine", "host", "gpu_type", "phase", "day", "hour"]
COLUMNS: dict[By, str] = {
    "tenant": "tenant_id",
    "team": "team",
    "cost_centre": "cost_centre",
    "tier": "tier",
    "model": "model",
    "engine": "engine_id",
    "host": "host",
    "gpu_type": "gpu_type",
    "phase": "phase",
    "day": "day",
    "hour": "hour",
}
OF_TENANTS: tuple[By, ...] = ("tenant", "team", "cost_centre", "tier")
"""What only a tenant's time has."""
COUNTS = (
    "requests",
    "prompt_tokens",
    "cached_tokens",
    "output_tokens",
    "gpu_ns",
    "unpriced_tokens",
    "free_tokens",
    "unrated_gpu_ns",
)
ACCOUNTS = ("tenant", "underfill", "idle", "overhead", "unobserved")
ALWAYS_SHOWN = ("idle", "overhead", "unobserved")
MONEY = ("amount_micro", "loaded_micro", "billed_micro", "api_micro")
CORRECTION = "correction of "
_SUMS = (*COUNTS, "value", "loaded", "amount_micro", "api_micro")
_compute: Any = pc


@dataclass(frozen=True, slots=True)
class Line:
    """What one group of an account used and what it costs.

    Amounts are micro-units of the report's currency. They are null where no time of the line has a rate; where some has
    none (`unrated_gpu_ns`) they are a lower bound. Prices per 1000 tokens are in the report's `unit`, null without
    tokens, where time has no rate, and on lines that are no tenant's.
    """

    account: str
    """tenant, underfill, idle, overhead, unobserved, or "correction of …"."""
    keys: tuple[str, ...]
    """One value for each of the report's `by`; empty where it does not apply."""
    requests: int = 0
    prompt_tokens: int = 0
    """Cached tokens included."""
    cached_tokens: int = 0
    output_tokens: int = 0
    gpu_ns: int = 0
    unpriced_tokens: int = 0
    """Prompt and output tokens of tenants that have no price by the token."""
    free_tokens: int = 0
    """Tokens whose price is 0."""
    unrated_gpu_ns: int = 0
    """GPU time without a rate."""
    share: Decimal | None = None
    """Part of all GPU time; the lines' shares sum to 1. Null when no time was used at all."""
    amount_micro: int | None = None
    """What its own time costs."""
    loaded_micro: int | None = None
    """The same with its part of idle time; idle is spread by busy time where the policy keeps it separate."""
    billed_micro: int | None = None
    """What it pays under the report's idle policy: one of the two above."""
    api_micro: int | None = None
    """What its priced tokens would cost by the token; null: none of them has a price."""
    per_1k: Decimal | None = None
    """Of busy time, per 1000 prompt and output tokens."""
    per_1k_loaded: Decimal | None = None
    """The same with the part of idle time."""
    per_1k_out: Decimal | None = None
    """Of busy time, per 1000 output tokens."""

    @property
    def tokens(self) -> int:
        """Prompt and output tokens."""
        return self.prompt_tokens + self.output_tokens

    @property
    def is_correction(self) -> bool:
        """Whether it corrects a closed period."""
        return self.account.startswith(CORRECTION)

    @property
    def rides(self) -> bool:
        """Whether it has riders, whose requests and tokens count: tenants, what corrects theirs, and the total."""
        corrects_riders = self.is_correction and bool(self.requests or self.tokens)
        return corrects_riders or self.account in ("tenant", "tenants", "total")


@dataclass(frozen=True, slots=True)
class Lines:
    """A report's lines, the sum of the tenants' and the sum of all."""

    lines: tuple[Line, ...]
    tenants: Line
    total: Line


def lines_of(cells: pa.Table, by: tuple[By, ...], idle_policy: IdlePolicy, is_priced: bool) -> Lines:
    """Add up published cells by account and `by`, in that order; idle, overhead and unobserved are always there."""
    rows = arrow.total_by(_grouped(cells, by), ("account", *by)).to_pylist()
    rows = [row for row in rows if row["account"] in ALWAYS_SHOWN or any(row[name] for name in (*COUNTS, "loaded"))]
    seen = {row["account"] for row in rows}
    rows += [_empty(account, by) for account in ALWAYS_SHOWN if account not in seen]
    rows.sort(key=lambda row: (_rank(row["account"]), [row[name] for name in by]))
    shares = _shares(rows)
    make = _Maker(by, idle_policy, is_priced)
    lines = tuple(make.line(row, share) for row, share in zip(rows, shares, strict=True))
    tenants = [number for number, row in enumerate(rows) if row["account"] == "tenant"]
    parents = [make.parent(name, rows, shares, which) for name, which in (("tenants", tenants), ("total", None))]
    return Lines(lines, *parents)


def sum_lines(account: str, lines: Sequence[Line], keys: int) -> Line:
    """A parent line of rounded children; amounts are null where no child's is known."""

    def known(values: Sequence[int | None]) -> int | None:
        found = [value for value in values if value is not None]
        return sum(found) if found else None

    shares = [line.share for line in lines if line.share is not None]
    sums: dict[str, Any] = {name: sum(getattr(line, name) for line in lines) for name in COUNTS}
    sums |= {name: known([getattr(line, name) for line in lines]) for name in MONEY}
    return Line(account, ("",) * keys, share=sum(shares, Decimal(0)) if shares else None, **sums)


def _rank(account: str) -> tuple[int, str]:
    return (ACCOUNTS.index(account), "") if account in ACCOUNTS else (len(ACCOUNTS), account)


def _empty(account: str, by: tuple[By, ...]) -> dict[str, Any]:
    return {"account": account} | dict.fromkeys(by, "") | dict.fromkeys(_SUMS, 0) | {"api_micro": None}


def _grouped(cells: pa.Table, by: tuple[By, ...]) -> pa.Table:
    """Account, keys and sums of each cell; what is no tenant's has no tenant, team or tier."""
    account, closed = cells.column("account"), cells.column("correction_of")
    is_own, is_tenant = _compute.equal(closed, ""), _compute.equal(account, "tenant")
    corrected = _compute.binary_join_element_wise(CORRECTION, closed, "")
    columns: dict[str, Any] = {"account": _compute.if_else(is_own, account, corrected)}
    for name in by:
        column: Any = cells.column(COLUMNS[name])
        columns[name] = _compute.if_else(is_tenant, column, "") if name in OF_TENANTS else column
    columns |= {name: cells.column(name) for name in _SUMS}
    whole: Any = columns
    return pa.table(whole)


def _shares(rows: Sequence[dict[str, Any]]) -> list[Decimal | None]:
    """Each row's part of the period's GPU time in millionths, by largest remainder; none of it is a correction's."""
    own = [row["gpu_ns"] if row["account"] in ACCOUNTS else 0 for row in rows]
    return parts_of_one(own)


def parts_of_one(weights: Sequence[int]) -> list[Decimal | None]:
    """Each weight's part of their sum in millionths, by largest remainder; unknown when the sum is nothing."""
    if not any(weights):
        return [None] * len(weights)
    return [Decimal(part).scaleb(-6) for part in apportion(MICRO, weights)]


@dataclass(frozen=True, slots=True)
class _Maker:
    """Makes lines from sums."""

    by: tuple[By, ...]
    idle_policy: IdlePolicy
    is_priced: bool

    def line(self, row: dict[str, Any], share: Decimal | None) -> Line:
        counts: dict[str, Any] = {name: row[name] for name in COUNTS}
        is_known = self.is_priced and row["amount_micro"] is not None
        amount, loaded = (row["amount_micro"], row["loaded"]) if is_known else (None, None)
        prices = self._prices(row) if row["account"] in ("tenant", "tenants") else {}
        return Line(
            row["account"],
            tuple(row[name] for name in self.by),
            **counts,
            share=share,
            amount_micro=amount,
            loaded_micro=loaded,
            billed_micro=amount if self.idle_policy == "separate" else loaded,
            api_micro=row["api_micro"],
            **prices,
        )

    def _prices(self, row: dict[str, Any]) -> dict[str, Any]:
        if self.is_priced and row["unrated_gpu_ns"]:
            return {}
        tokens = row["prompt_tokens"] + row["output_tokens"]
        return {
            "per_1k": per_1k(row["value"], tokens),
            "per_1k_loaded": per_1k(row["loaded"], tokens),
            "per_1k_out": per_1k(row["value"], row["output_tokens"]),
        }

    def parent(
        self, name: str, rows: Sequence[dict[str, Any]], shares: Sequence[Decimal | None], which: Sequence[int] | None
    ) -> Line:
        """The sum of some rows, or of all."""
        children = range(len(rows)) if which is None else which
        total: dict[str, Any] = {"account": name} | dict.fromkeys(self.by, "")
        for column in _SUMS:
            known = [rows[child][column] for child in children if rows[child][column] is not None]
            total[column] = sum(known) if known or not (children or column == "api_micro") else None
        parts = [shares[child] for child in children]
        known_parts = [part for part in parts if part is not None]
        whole = sum(known_parts, Decimal(0)) if len(known_parts) == len(parts) else None
        return self.line(total, whole)
