"""The report: who used the GPUs in a window of time, what it costs, and whether the lines add up to the invoice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, Literal, get_args

import pyarrow as pa
import pyarrow.compute as pc

from ..events import MINUTE_NS, Run
from . import arrow
from .apportion import apportion
from .rating import MICRO, amounts, invoice, money_text, per_1k, spread

By = Literal["tenant", "tier", "model", "engine", "host", "day"]
COLUMNS: dict[By, str] = {
    "tenant": "tenant_id",
    "tier": "tier",
    "model": "model",
    "engine": "engine_id",
    "host": "host",
    "day": "day",
}
COUNTS = ("requests", "prompt_tokens", "cached_tokens", "output_tokens", "gpu_ns")
ACCOUNTS = ("tenant", "underfill", "idle", "overhead", "unobserved")
ALWAYS_SHOWN = ("idle", "overhead", "unobserved")
BASIS_WORDS = {"step": "single steps", "interval": "scraped intervals", "estimated": "estimates"}
NO_RATE = "no rate"
GPU_MS = "GPU-ms"
_compute: Any = pc


@dataclass(frozen=True, slots=True)
class Line:
    """What one group of an account used and what it costs.

    Amounts are micro-units of the report's currency, null without a rate; `loaded_micro` includes the line's part of
    idle time. Prices per 1000 tokens are in the report's `unit`, null without tokens and on lines that are no tenant's.
    """

    account: str
    keys: tuple[str, ...]
    """One value for each of the report's `by`; empty where it does not apply."""
    requests: int = 0
    prompt_tokens: int = 0
    """Cached tokens included."""
    cached_tokens: int = 0
    output_tokens: int = 0
    gpu_ns: int = 0
    share: Decimal | None = None
    """Part of all GPU time; the lines' shares sum to 1. Null when no time was used at all."""
    amount_micro: int | None = None
    loaded_micro: int | None = None
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


@dataclass(frozen=True, slots=True)
class Report:
    """Lines that add up, and by how much they do not."""

    by: tuple[By, ...]
    from_ns: int
    to_ns: int
    rate: Decimal | None
    """Price of one GPU-hour; null: no rate, so lines carry GPU time and no money."""
    currency: str
    lines: tuple[Line, ...]
    """The finest lines, by account and keys."""
    tenants: Line
    """Sum of the tenants' lines."""
    total: Line
    """Sum of all lines."""
    wall_gpu_ns: int
    """The runs' wall clocks within the window × their GPUs: what the lines must add up to."""
    invoice_micro: int | None
    """What that wall costs; null without a rate."""
    basis: tuple[tuple[str, Decimal], ...]
    """Part of the GPU time that rests on each basis; sums to 1."""

    @property
    def unit(self) -> str:
        """Unit of the prices per 1000 tokens: the currency, or GPU milliseconds where there is no rate."""
        return GPU_MS if self.rate is None else self.currency

    @property
    def residual_gpu_ns(self) -> int:
        """GPU time of all lines minus the runs' walls; 0 when everything adds up."""
        return self.total.gpu_ns - self.wall_gpu_ns

    @property
    def residual_micro(self) -> int | None:
        """Amount of all lines minus the invoice; 0 when everything adds up, null without a rate."""
        if self.total.amount_micro is None or self.invoice_micro is None:
            return None
        return self.total.amount_micro - self.invoice_micro

    def account(self, name: str) -> Line:
        """Sum of an account's lines."""
        return _sum(name, [x for x in self.lines if x.account == name], len(self.by), self.rate is not None)

    def check(self) -> tuple[str, ...]:
        """What does not add up, in sentences; empty when the lines equal the walls and the invoice."""
        problems: list[str] = []
        if self.residual_gpu_ns:
            problems.append(f"The lines are {self.residual_gpu_ns:+,} GPU·ns off the runs' wall clocks.")
        if self.residual_micro:
            off = money_text(abs(self.residual_micro))
            side = "above" if self.residual_micro > 0 else "below"
            problems.append(f"The lines are {off} {self.currency} {side} the invoice.")
        return tuple(problems)

    def notes(self) -> tuple[str, ...]:
        """What a reader must know to trust the numbers, in sentences."""
        rate = f"No rate: lines show GPU time, and {GPU_MS} per 1k tokens."
        if self.rate is not None:
            rate = f"{self.rate:f} {self.currency} per GPU-hour."
        rests = ", ".join(f"{share * 100:.1f} % {BASIS_WORDS[basis]}" for basis, share in self.basis)
        basis = [f"Rests on: {rests}."] if rests else []
        return (rate, "No declared capacity: the runs' walls stand in for it.", *basis)


def build_report(
    ledger: pa.Table,
    runs: Sequence[Run],
    rate: Decimal | None,
    by: Sequence[By] = ("tenant",),
    currency: str = "USD",
    window: tuple[int, int] | None = None,
) -> Report:
    """A report of ledger lines (LEDGER schema) for `window` [from, to) in UTC ns, by default all the runs' time.

    Lines are grouped by account and `by`; time that is no tenant's has neither tenant nor tier. Idle, overhead and
    unobserved time are always shown. Raises ValueError for an unknown group or a window off whole minutes.
    """
    groups = _groups(by)
    if window is None:
        window = min((r.started_ns for r in runs), default=0), max((r.wall_end_ns for r in runs), default=0)
    else:
        ledger = _within(ledger, *window)
    lines = _price(_finest(ledger, groups), rate)
    tenants, priced = [line for line in lines if line.account == "tenant"], rate is not None
    wall = sum(_wall_ns(run, *window) * run.gpus for run in runs)
    return Report(
        groups,
        *window,
        rate,
        currency,
        tuple(lines),
        _with_prices(_sum("tenants", tenants, len(groups), priced), *_loaded(tenants, lines, rate)),
        _sum("total", lines, len(groups), priced),
        wall,
        None if rate is None else invoice(wall, rate),
        _basis(ledger),
    )


def _groups(by: Sequence[By]) -> tuple[By, ...]:
    unknown = [name for name in by if name not in COLUMNS]
    if unknown:
        raise ValueError(f"cannot group by {', '.join(unknown)}; choose from {', '.join(get_args(By))}")
    if not by:
        raise ValueError("a report needs something to group by")
    return tuple(dict.fromkeys(by))


def _within(ledger: pa.Table, from_ns: int, to_ns: int) -> pa.Table:
    if from_ns % MINUTE_NS or to_ns % MINUTE_NS:
        raise ValueError("a report starts and ends on whole minutes")
    minute = arrow.ints(ledger, "minute_ns")
    return ledger.filter(pa.array((minute >= from_ns) & (minute < to_ns)))


def _wall_ns(run: Run, from_ns: int, to_ns: int) -> int:
    start, end = max(run.started_ns, from_ns), min(run.wall_end_ns, to_ns)
    return end - start if end > start else 0


def _finest(ledger: pa.Table, by: tuple[By, ...]) -> list[Line]:
    """Lines by account and keys, in that order, with a line for each account that is always shown."""
    lines = [
        Line(row["account"], tuple(row[name] for name in by), **{name: row[name] for name in COUNTS})
        for row in arrow.total_by(_grouped(ledger, by), ("account", *by)).to_pylist()
        if row["account"] in ALWAYS_SHOWN or any(row[name] for name in COUNTS)
    ]
    seen = {line.account for line in lines}
    lines += [Line(account, ("",) * len(by)) for account in ALWAYS_SHOWN if account not in seen]
    return sorted(lines, key=lambda line: (ACCOUNTS.index(line.account), line.keys))


def _grouped(ledger: pa.Table, by: tuple[By, ...]) -> pa.Table:
    """Account, keys and counts of each ledger line."""
    account: Any = ledger.column("account")
    is_tenant = _compute.equal(account, "tenant")
    columns: dict[str, Any] = {"account": account}
    for name in by:
        column: Any = _days(ledger) if name == "day" else ledger.column(COLUMNS[name])
        columns[name] = _compute.if_else(is_tenant, column, "") if name in ("tenant", "tier") else column
    data: Any = columns | {name: ledger.column(name) for name in COUNTS}
    return pa.table(data)


def _days(ledger: pa.Table) -> object:
    """The UTC day of every line as YYYY-MM-DD."""
    minute: Any = ledger.column("minute_ns")
    return minute.cast(pa.timestamp("ns")).cast(pa.date32(), safe=False).cast(pa.string())


def _price(lines: list[Line], rate: Decimal | None) -> list[Line]:
    """Fill in shares, amounts and prices; idle is spread over the tenants' lines by their busy time."""
    shares = _shares([line.gpu_ns for line in lines])
    lines = [replace(line, share=share) for line, share in zip(lines, shares, strict=True)]
    if rate is not None:
        money = amounts([line.gpu_ns for line in lines], rate)
        lines = [replace(line, amount_micro=amount) for line, amount in zip(lines, money, strict=True)]
    idle = sum(_value(line, rate) for line in lines if line.account == "idle")
    busy = [line.gpu_ns if line.account == "tenant" else 0 for line in lines]
    parts, left = spread(idle, busy)
    spent = [0 if line.account == "idle" and not left else _value(line, rate) for line in lines]
    return [_load(line, value + part, rate) for line, value, part in zip(lines, spent, parts, strict=True)]


def _load(line: Line, loaded: int, rate: Decimal | None) -> Line:
    """Fill in what includes idle time, and a tenant's prices."""
    if rate is not None:
        line = replace(line, loaded_micro=loaded)
    return _with_prices(line, _value(line, rate), loaded) if line.account == "tenant" else line


def _value(line: Line, rate: Decimal | None) -> int:
    """What prices are made of: micro-units of money, or without a rate GPU-nanoseconds, millionths of a millisecond."""
    return line.gpu_ns if rate is None or line.amount_micro is None else line.amount_micro


def _loaded(tenants: list[Line], lines: list[Line], rate: Decimal | None) -> tuple[int, int]:
    """All tenants' value, alone and together with idle time."""
    value = sum(_value(line, rate) for line in tenants)
    idle = sum(_value(line, rate) for line in lines if line.account == "idle")
    return value, value + idle if any(line.gpu_ns for line in tenants) else value


def _with_prices(line: Line, value: int, loaded: int) -> Line:
    return replace(
        line,
        per_1k=per_1k(value, line.tokens),
        per_1k_loaded=per_1k(loaded, line.tokens),
        per_1k_out=per_1k(value, line.output_tokens),
    )


def _sum(account: str, lines: Sequence[Line], keys: int, priced: bool) -> Line:
    """A parent line: the sum of its rounded children."""
    shares = [line.share for line in lines if line.share is not None]
    return Line(
        account,
        ("",) * keys,
        requests=sum(line.requests for line in lines),
        prompt_tokens=sum(line.prompt_tokens for line in lines),
        cached_tokens=sum(line.cached_tokens for line in lines),
        output_tokens=sum(line.output_tokens for line in lines),
        gpu_ns=sum(line.gpu_ns for line in lines),
        share=sum(shares, Decimal(0)) if len(shares) == len(lines) else None,
        amount_micro=sum(line.amount_micro for line in lines if line.amount_micro is not None) if priced else None,
        loaded_micro=sum(line.loaded_micro for line in lines if line.loaded_micro is not None) if priced else None,
    )


def _shares(gpu_ns: Sequence[int]) -> list[Decimal | None]:
    """Each line's part of the whole in millionths, by largest remainder; unknown when the whole is nothing."""
    if not any(gpu_ns):
        return [None] * len(gpu_ns)
    return [Decimal(part).scaleb(-6) for part in apportion(MICRO, gpu_ns)]


def _basis(ledger: pa.Table) -> tuple[tuple[str, Decimal], ...]:
    rows = arrow.total_by(ledger.select(["basis", "gpu_ns"]), ("basis",)).to_pylist()
    used = sorted(((row["basis"], row["gpu_ns"]) for row in rows if row["gpu_ns"]), key=lambda row: -row[1])
    shares = _shares([gpu_ns for _, gpu_ns in used])
    return tuple((basis, share) for (basis, _), share in zip(used, shares, strict=True) if share is not None)
