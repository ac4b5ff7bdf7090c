"""A snapshot: everything one frame shows. Nothing else feeds the widgets, the plain text or the JSON.

Quantities are integers (ns, GPU·ns, tokens, micro-units of money per hour), so that a frame adds up exactly;
percentages are made from them by whoever shows them. Unknown is None with a reason beside it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Literal

from .numbers import share

State = Literal["starting", "live", "idle", "ended", "lost"]
Severity = Literal["bad", "warn"]


@dataclass(frozen=True, slots=True)
class Engine:
    """Who is watched, and how it is doing."""

    engine_id: str
    run_id: str
    model: str
    gpu_type: str
    gpus: int
    mode: str
    clock: str
    state: State
    behind_ns: int | None
    """How old the newest event is; None for engines in virtual time and for ended ones."""
    others: int
    """Other engines in the same store that have not ended."""
    every_ns: int | None = None
    """How often its page is read; None: it tells every step."""


@dataclass(frozen=True, slots=True)
class Latency:
    """Percentiles over the requests that finished in the window (nearest rank), and how many they were.

    Those of a scraped engine come from its histograms, interpolated; `…_is_more`: beyond the last bound, which is told.
    """

    p50_ns: int
    p99_ns: int
    requests: int
    p50_is_more: bool = False
    p99_is_more: bool = False


@dataclass(frozen=True, slots=True)
class Bin:
    """Busy time with `low` to `high` sequences on board."""

    low: int
    high: int
    busy_ns: int

    @property
    def label(self) -> str:
        """`1` or `9–16`."""
        return str(self.low) if self.low == self.high else f"{self.low}–{self.high}"


@dataclass(frozen=True, slots=True)
class Accounts:
    """The window's GPU-nanoseconds by owner. They sum to the window's wall time × GPUs, always.

    `unobserved` is what no event accounts for. Negative, it would say that steps overlap: shown, never clamped.
    """

    riders: int
    underfill: int
    idle: int
    overhead: int
    unobserved: int

    @property
    def total(self) -> int:
        """Wall time × GPUs."""
        return self.riders + self.underfill + self.idle + self.overhead + self.unobserved


@dataclass(frozen=True, slots=True)
class Money:
    """What an hour like this window costs, in micro-units of `currency`; the parts sum to `total`."""

    currency: str
    total: int
    riders: int
    underfill: int
    idle: int
    overhead: int
    unobserved: int


@dataclass(frozen=True, slots=True)
class BudgetRow:
    """A budget whose period holds now, and how it stood at `seen_ns`; amounts are micro-units of `currency`.

    `soft_day` and `hard_day` are the local days on which the limits are reached at this pace, None when not within the
    period. `reason` says why `spent_micro` is not known.
    """

    team: str
    period: str
    tz: str
    currency: str
    spent_micro: int | None
    per_day_micro: int | None
    soft_micro: int | None
    hard_micro: int | None
    soft_day: str | None
    hard_day: str | None
    state: str
    reason: str | None
    seen_ns: int


@dataclass(frozen=True, slots=True)
class Alert:
    """Something that needs attention. Every alert has its cause and a next step."""

    key: str
    """What it is about, the same while it lasts: `preemption`, `budget:team`."""
    severity: Severity
    title: str
    """What is wrong, in a few words."""
    cause: str
    """The figures that say so, and why it happens."""
    step: str
    """What to do next."""


@dataclass(frozen=True, slots=True)
class Tip:
    """A change that would save, as `farebox advise` found it."""

    title: str
    currency: str | None
    saved_micro: int | None
    """Off the invoice in a month, in micro-units; None: no rate."""
    freed_gpu_ns: int
    """Busy GPU time less in a month."""
    command: str
    """Shows the same figures again."""


@dataclass(frozen=True, slots=True)
class TenantRow:
    """One tenant in one tier within the window.

    `per_1k…` are in `Snapshot.unit` per 1000 tokens: all tokens (busy only, and with idle spread by busy time) or
    output tokens (busy only). None when there were no such tokens.
    """

    tenant_id: str
    tier: str
    riding: int
    prompt_tokens: int
    cached_tokens: int
    output_tokens: int
    gpu_ns: int
    hourly: int | None
    per_1k: Decimal | None
    per_1k_full: Decimal | None
    per_1k_out: Decimal | None
    budget: BudgetRow | None
    """The worst one of the tenant's team; None: it has none."""


@dataclass(frozen=True, slots=True)
class Series:
    """Time-lines, one value per whole second, the newest last; None where nothing is known or nothing ran."""

    riding: tuple[float | None, ...]
    waiting: tuple[float | None, ...]
    step_ms: tuple[float | None, ...]
    prefill: tuple[float | None, ...]
    decode: tuple[float | None, ...]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One engine over the window [now − wall, now)."""

    engine: Engine
    now_ns: int
    wall_ns: int

    riding: int | None
    seats: int | None
    waiting: int | None
    kv_used: int | None
    kv_total: int | None
    preemptions: int | None

    steps: int
    step_ns: int
    """Total length of the steps that ended in the window."""
    busy_ns: int
    prefill_ns: int
    decode_ns: int
    """Busy time whose split is known: its two parts."""
    seat_ns: int
    """Σ sequences on board × busy time."""

    prompt_tokens: int
    """Prompt tokens computed or served from the cache."""
    cached_tokens: int
    output_tokens: int

    finished: int | None
    rejected: int
    ttft: Latency | None
    itl: Latency | None
    latency_reason: str | None

    bins: tuple[Bin, ...]
    compute_used: float | None
    bandwidth_used: float | None
    roofline_reason: str | None

    alone_ns: int | None
    """What the riders' rows would have taken one request at a time, by the step model."""
    alone_busy_ns: int
    """The busy time that `alone_ns` compares with."""
    alone_reason: str | None

    accounts: Accounts
    money: Money | None
    money_reason: str | None
    unit: str
    """What `per_1k` figures are in: a currency, or "GPU-ms" when there is no rate."""

    per_1k: Decimal | None
    """`unit` per 1000 tokens in and out, busy time only; None without tokens, or where a page does not tell them."""

    tenants: tuple[TenantRow, ...]
    budgets: tuple[BudgetRow, ...]
    """Those whose period holds now, the worst first."""
    series: Series
    kv_ppm: tuple[int, ...] | None = None
    """KV cache in use of each data-parallel engine in 10⁻⁶, as a page says; None: see `kv_used`."""
    missing: Mapping[str, str] = field(default_factory=dict[str, str])
    """Why figures of a scraped engine are None."""
    trouble: str | None = None
    """What is wrong with a source, in plain words."""
    alerts: tuple[Alert, ...] = ()
    """What needs attention, the worst first."""
    tips: tuple[Tip, ...] = ()
    """What would save most, the best first."""

    def known(self, column: str, value: int) -> int | None:
        """A sum of tokens, or None where the page does not tell what it is the sum of."""
        return None if column in self.missing else value

    @property
    def kv_part(self) -> float | None:
        """Part of the KV blocks in use, 0…1; of several caches the fullest one's."""
        if self.kv_ppm:
            return max(self.kv_ppm) / 1e6
        return share(self.kv_used, self.kv_total) if self.kv_used is not None and self.kv_total is not None else None

    @property
    def saving(self) -> float | None:
        """Part of the time alone that batching saves; negative when riding alone would have been quicker."""
        if self.alone_ns is None or self.alone_ns <= 0:
            return None
        return 1 - self.alone_busy_ns / self.alone_ns

    @property
    def per_1k_alone(self) -> Decimal | None:
        """`per_1k` if the same rows had been computed one request at a time, by the step model."""
        if self.per_1k is None or not self.alone_ns or self.alone_busy_ns <= 0:
            return None
        return self.per_1k * self.alone_ns / self.alone_busy_ns

    @property
    def empty_seats(self) -> float | None:
        """Seats empty while steps ran, time-weighted, 0…1."""
        full = share(self.seat_ns, self.busy_ns * self.seats) if self.seats else None
        return None if full is None else 1 - full

    @property
    def no_step(self) -> float | None:
        """Part of the wall time in which the engine was up and no step ran."""
        return share(self.accounts.idle, self.accounts.total)
