"""Figures: what the seconds of one run add up to within a window."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import NamedTuple

from ..costing.apportion import apportion
from ..events import Rate
from .fold import KEEP_S, Fold, Second, Usage, alone_ns
from .money import hourly_micro, per_1k
from .numbers import SECOND_NS, nearest_rank
from .pages import as_pages_say
from .snapshot import Accounts, Bin, BudgetRow, Engine, Latency, Money, Series, Snapshot, State, TenantRow

Peaks = Callable[[str], tuple[int, int] | None]
"""GPU type → peak (FLOP/s, bytes/s) of one GPU, or None when the type is not known."""


class Context(NamedTuple):
    """What a snapshot needs to know besides the run's own seconds."""

    now_ns: int
    window_ns: int
    state: State
    behind_ns: int | None
    others: int
    rates: Sequence[Rate]
    peaks: Peaks | None
    budgets: tuple[BudgetRow, ...]
    """Those that hold now, the worst first."""
    teams: Mapping[str, str]
    """Tenant → team."""
    trouble: str | None = None
    """What is wrong with a source."""


class Costs(NamedTuple):
    """The money side of a snapshot."""

    money: Money | None
    reason: str | None
    per_gpu_hour: Decimal | None
    unit: str
    hourly: list[int | None]


def snapshot_of(fold: Fold, context: Context) -> Snapshot:
    """Add up the window. It starts on a whole second, or where the run or what is known of it starts."""
    snapshot = _of_steps(fold, context)
    return as_pages_say(snapshot, fold.intervals) if fold.is_scraped else snapshot


def _of_steps(fold: Fold, context: Context) -> Snapshot:
    run, now = fold.run, context.now_ns
    begin = max(-(-(now - context.window_ns) // SECOND_NS) * SECOND_NS, fold.first_ns)
    begin = min(begin, now)
    seconds = fold.window(begin, now)
    usage = _usage(seconds)
    accounts = _accounts(fold, seconds, usage, begin, now)
    costs = _costs(fold, context, accounts, usage)
    compute, bandwidth, why_not = _roofline(fold, seconds, context.peaks)
    ttft = _latency([ns for s in seconds for ns in s.ttft_ns])
    last = fold.last_step
    aboard = last is not None and context.state == "live"
    busy_ns = sum(s.busy_ns for s in seconds)
    prompt_tokens = sum(u.prompt_tokens for u in usage.values())
    output_tokens = sum(u.output_tokens for u in usage.values())
    return Snapshot(
        engine=Engine(
            engine_id=run.engine_id,
            run_id=run.run_id,
            model=run.model,
            gpu_type=run.gpu_type,
            gpus=run.gpus,
            mode=run.mode,
            clock=run.clock,
            state=context.state,
            behind_ns=context.behind_ns,
            others=context.others,
        ),
        now_ns=now,
        wall_ns=now - begin,
        riding=last.running if last and aboard else 0,
        seats=run.max_num_seqs,
        waiting=last.waiting if last and aboard else 0,
        kv_used=last.kv_blocks_used if last else None,
        kv_total=last.kv_blocks_total if last else None,
        preemptions=sum(s.preemptions for s in seconds),
        steps=sum(s.steps for s in seconds),
        step_ns=sum(s.step_ns for s in seconds),
        busy_ns=busy_ns,
        prefill_ns=sum(s.prefill_ns for s in seconds),
        decode_ns=sum(s.decode_ns for s in seconds),
        seat_ns=sum(s.seat_ns for s in seconds),
        prompt_tokens=prompt_tokens,
        cached_tokens=sum(u.cached_tokens for u in usage.values()),
        output_tokens=output_tokens,
        finished=sum(s.finished for s in seconds),
        rejected=sum(s.rejected for s in seconds),
        ttft=ttft,
        itl=_latency([ns for s in seconds for ns in s.itl_ns]),
        latency_reason=None if ttft else "no request finished in the window",
        bins=_bins(seconds, run.max_num_seqs or max((n for s in seconds for n in s.batch_ns), default=0)),
        compute_used=compute,
        bandwidth_used=bandwidth,
        roofline_reason=why_not,
        alone_ns=alone_ns(seconds) if fold.model else None,
        alone_busy_ns=sum(s.alone_busy_ns for s in seconds),
        alone_reason=None if fold.model else "the run has no step model",
        accounts=accounts,
        money=costs.money,
        money_reason=costs.reason,
        unit=costs.unit,
        per_1k=per_1k(busy_ns * run.gpus, prompt_tokens + output_tokens, costs.per_gpu_hour),
        tenants=_tenants(fold, usage, accounts, costs, _team_budgets(context), aboard),
        budgets=context.budgets,
        series=_series(fold, now),
        trouble=context.trouble,
    )


def _usage(seconds: Sequence[Second]) -> dict[tuple[str, str], Usage]:
    """Usage by (tenant, tier), the biggest user of the GPU first, equal ones by name."""
    total: defaultdict[tuple[str, str], Usage] = defaultdict(Usage)
    for second in seconds:
        for key, part in second.tenants.items():
            whole = total[key]
            whole.gpu_ns += part.gpu_ns
            whole.prompt_tokens += part.prompt_tokens
            whole.cached_tokens += part.cached_tokens
            whole.output_tokens += part.output_tokens
    return dict(sorted(total.items(), key=lambda item: (-item[1].gpu_ns, item[0])))


def _accounts(
    fold: Fold, seconds: Sequence[Second], usage: dict[tuple[str, str], Usage], begin: int, now: int
) -> Accounts:
    gpus = fold.run.gpus
    since_last = max(0, now - max(fold.told_until_ns, begin))
    loading = max(0, min(now, fold.up_ns) - begin)
    riders = sum(u.gpu_ns for u in usage.values())
    underfill = sum(s.underfill for s in seconds)
    idle = (sum(s.idle_ns for s in seconds) + since_last) * gpus
    overhead = sum(s.overhead for s in seconds) + loading * gpus
    unobserved = (now - begin) * gpus - riders - underfill - idle - overhead
    return Accounts(riders, underfill, idle, overhead, unobserved)


def _costs(fold: Fold, context: Context, accounts: Accounts, usage: dict[tuple[str, str], Usage]) -> Costs:
    from ..costing.rating import RateError, find_rate, price_of

    nothing: list[int | None] = [None] * len(usage)
    try:
        rate = find_rate(context.rates, fold.run.gpu_type, context.now_ns, fold.run.host, fold.run.engine_id)
        price = price_of(rate.per_gpu_hour) if rate else None
    except RateError as error:
        return Costs(None, str(error), None, "GPU-ms", nothing)
    if rate is None or price is None:
        return Costs(None, f"no rate for {fold.run.gpu_type}", None, "GPU-ms", nothing)
    lines = [
        *(u.gpu_ns for u in usage.values()),
        accounts.underfill,
        accounts.idle,
        accounts.overhead,
        accounts.unobserved,
    ]
    if accounts.total <= 0 or min(lines) < 0:
        reason = "the window is empty" if accounts.total <= 0 else "steps overlap: the window does not add up"
        return Costs(None, reason, price, rate.currency, nothing)
    total = hourly_micro(price, fold.run.gpus)
    *riders, underfill, idle, overhead, unobserved = apportion(total, lines)
    money = Money(rate.currency, total, sum(riders), underfill, idle, overhead, unobserved)
    return Costs(money, None, price, rate.currency, [*riders])


def _team_budgets(context: Context) -> dict[str, BudgetRow]:
    """Tenant → the worst budget of its team."""
    worst = {budget.team: budget for budget in reversed(context.budgets)}
    return {tenant: worst[team] for tenant, team in context.teams.items() if team in worst}


def _tenants(
    fold: Fold,
    usage: dict[tuple[str, str], Usage],
    accounts: Accounts,
    costs: Costs,
    budgets: Mapping[str, BudgetRow],
    aboard: bool,
) -> tuple[TenantRow, ...]:
    riding = fold.aboard if aboard else {}
    rows: list[TenantRow] = []
    for (key, used), hourly in zip(usage.items(), costs.hourly, strict=True):
        tokens = used.prompt_tokens + used.output_tokens
        loaded = used.gpu_ns
        if accounts.riders > 0:
            loaded += accounts.idle * used.gpu_ns // accounts.riders
        rows.append(
            TenantRow(
                tenant_id=key[0],
                tier=key[1],
                riding=riding.get(key, 0),
                prompt_tokens=used.prompt_tokens,
                cached_tokens=used.cached_tokens,
                output_tokens=used.output_tokens,
                gpu_ns=used.gpu_ns,
                hourly=hourly,
                per_1k=per_1k(used.gpu_ns, tokens, costs.per_gpu_hour),
                per_1k_full=per_1k(loaded, tokens, costs.per_gpu_hour),
                per_1k_out=per_1k(used.gpu_ns, used.output_tokens, costs.per_gpu_hour),
                budget=budgets.get(key[0]),
            )
        )
    return tuple(rows)


def _roofline(
    fold: Fold, seconds: Sequence[Second], peaks: Peaks | None
) -> tuple[float | None, float | None, str | None]:
    """Arithmetic and memory traffic of the steps against the datasheet peaks, each 0…1, or why not."""
    peak = peaks(fold.run.gpu_type) if peaks else None
    if peak is None:
        return None, None, f"no datasheet for {fold.run.gpu_type}"
    flops_ns, bytes_ns = sum(s.flops_ns for s in seconds), sum(s.bytes_ns for s in seconds)
    if flops_ns == 0 and bytes_ns == 0:
        return None, None, "no step in the window tells its FLOPs or bytes"
    gpus = fold.run.gpus
    compute = sum(s.flops for s in seconds) * SECOND_NS / (flops_ns * peak[0] * gpus) if flops_ns else None
    bandwidth = sum(s.bytes for s in seconds) * SECOND_NS / (bytes_ns * peak[1] * gpus) if bytes_ns else None
    return compute, bandwidth, None


def _latency(values: list[int]) -> Latency | None:
    """Median and 99th percentile."""
    if not values:
        return None
    values.sort()
    return Latency(nearest_rank(values, 50), nearest_rank(values, 99), len(values))


def _bins(seconds: Sequence[Second], seats: int) -> tuple[Bin, ...]:
    """Busy time by sequences on board: 1, 2–4, 5–8, 9–16, … the last one ends at the seats there are."""
    busy: Counter[int] = Counter()
    for second in seconds:
        busy.update(second.batch_ns)
    bins: list[Bin] = []
    low, high = 1, 1
    while low <= seats:
        top = min(high, seats)
        last = top == seats
        inside = sum(ns for size, ns in busy.items() if size >= low and (last or size <= top))
        bins.append(Bin(low, top, inside))
        low, high = high + 1, 4 if high == 1 else high * 2
    return tuple(bins)


def _series(fold: Fold, now: int) -> Series:
    """One value for each whole second before `now` that is still kept; the second that is going on is left out."""
    end = now // SECOND_NS
    first = max(-(-fold.first_ns // SECOND_NS), end - KEEP_S)
    seconds = [fold.seconds.get(n) or Second() for n in range(first, end)]
    return Series(
        riding=tuple(s.seat_ns / SECOND_NS for s in seconds),
        waiting=tuple(s.waiting_ns / SECOND_NS for s in seconds),
        step_ms=tuple(s.step_ns / s.steps / 1e6 if s.steps else None for s in seconds),
        prefill=tuple(_of(s.prefill_ns, s) for s in seconds),
        decode=tuple(_of(s.decode_ns, s) for s in seconds),
    )


def _of(part: int, second: Second) -> float | None:
    split = second.prefill_ns + second.decode_ns
    return part / split if split else None
