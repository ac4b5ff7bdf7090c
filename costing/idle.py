"""Idle time and who pays for it, place by place and day by day."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..events import Tenant
from .capacity import Paid, clip
from .exact import share_out
from .periods import Span
from .rating import IdlePolicy, idle_weights
from .segments import Bools, Ints, Segments

IDLE_WORDS: dict[IdlePolicy, str] = {
    "separate": "Idle time is a line of its own.",
    "weighted": "Idle time is paid by the tenants of the same host and day, by busy time.",
    "even": "Idle time is paid by head, per host and day: by all tenants on the register, and whoever else rode there.",
    "reservation": "Idle time is paid by tenants for what they reserved and did not use, per host and day.",
}


class IdleRows(NamedTuple):
    """Lines as columns (int64[rows], bool[rows]) and the places and days that they belong to."""

    place_days: Segments
    tenants: Ints
    """Code of the line's tenant, −1 for nobody's."""
    is_idle: Bools
    busy_ns: Ints
    values: Ints
    """What the line costs."""
    room: Ints
    """By what a tenant's part is shared out to its lines on a place and day."""


def payers(policy: IdlePolicy, riders: set[str], tenants: Sequence[Tenant], up: Sequence[Paid], day: Span) -> set[str]:
    """Who may pay for the idle time of a place and day, where `riders` rode and `up` says when it could be ridden."""
    match policy:
        case "separate":
            return set()
        case "weighted":
            return riders
        case "even":
            held = {row.tenant_id for row in tenants if row.from_ns < day.to_ns and not _ended(row, day)}
            return riders | held
        case "reservation":
            return set(reserved_ns(tenants, up, day))


def _ended(row: Tenant, day: Span) -> bool:
    return row.to_ns is not None and row.to_ns <= max(day.from_ns, row.from_ns)


def reserved_ns(tenants: Sequence[Tenant], up: Sequence[Paid], day: Span) -> dict[str, int]:
    """GPU-nanoseconds that each tenant reserved on a day, while anything was declared or running (`up`)."""
    found: dict[str, int] = {}
    for tenant in tenants:
        end = day.to_ns if tenant.to_ns is None else min(tenant.to_ns, day.to_ns)
        held = Span("", max(tenant.from_ns, day.from_ns), end)
        parts = [clip(paid, held) for paid in up]
        wall = sum(part.to_ns - part.from_ns for part in parts if part)
        if wall and tenant.reserved_milligpus:
            found[tenant.tenant_id] = found.get(tenant.tenant_id, 0) + tenant.reserved_milligpus * wall // 1000
    return found


def spread_idle(policy: IdlePolicy, rows: IdleRows, reserved: dict[tuple[int, int], int]) -> Ints:
    """What each line gains or gives when idle is shared out (int64[rows]); sums to 0 over each place and day.

    `reserved` has GPU-nanoseconds by (place and day, tenant). Only tenants with a line on a place and day pay there.
    """
    values, place_days = rows.values, rows.place_days
    result = np.zeros_like(values)
    if policy == "separate" or not len(values):
        return result
    idle = place_days.sum(np.where(rows.is_idle, values, 0))
    lines = np.flatnonzero(rows.tenants >= 0)
    scale = int(rows.tenants.max()) + 1
    payer, payer_of = np.unique(place_days.of[lines] * scale + rows.tenants[lines], return_inverse=True)
    of_place = payer // scale if scale else payer
    busy = np.zeros(len(payer), np.int64)
    np.add.at(busy, payer_of, rows.busy_ns[lines])
    kept = [reserved.get(divmod(each, scale), 0) for each in payer.tolist()]
    weights = np.array(idle_weights(policy, busy.tolist(), kept), np.int64)
    total = np.zeros(len(idle), np.int64)
    np.add.at(total, of_place, weights)
    idle[total == 0] = 0
    parts = _by_group(idle, weights, of_place)
    result[lines] = _by_group(parts, rows.room[lines], payer_of)
    return np.where(rows.is_idle & (total > 0)[place_days.of], -values, result)


def _by_group(amounts: Ints, weights: Ints, of: Ints) -> Ints:
    """`share_out` over rows in any order: `of` is each row's place in `amounts`."""
    order = np.argsort(of, kind="stable")
    groups = Segments.from_labels(of[order])
    parts = np.empty_like(weights)
    parts[order] = share_out(amounts[of[order]][groups.starts], weights[order], groups)
    return parts
