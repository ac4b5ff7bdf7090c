"""Idle time and who pays for it, place by place and day by day."""

from __future__ import annotations

from collections.abc import Sequence

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
    "even": "Idle time is paid by the tenants of the same host and day, by head.",
    "reservation": "Idle time is paid by tenants for what they reserved and did not use, per host and day.",
}


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


def spread_idle(
    policy: IdlePolicy,
    place_days: Segments,
    tenants: Ints,
    is_idle: Bools,
    busy_ns: Ints,
    values: Ints,
    reserved: dict[tuple[int, int], int],
) -> Ints:
    """What each line gains or gives when idle is shared out (int64[rows]); sums to 0 over each place and day.

    Rows are lines: `tenants` their tenant's code, −1 for nobody's, `values` what they cost. A tenant's part goes to its
    lines by busy time. `reserved` has GPU-nanoseconds by (segment, tenant); each of them needs a line.
    """
    result = np.zeros_like(values)
    if policy == "separate" or not len(values):
        return result
    idle = place_days.sum(np.where(is_idle, values, 0))
    lines = np.flatnonzero(tenants >= 0)
    scale = int(tenants.max()) + 1
    payers, payer_of = np.unique(place_days.of[lines] * scale + tenants[lines], return_inverse=True)
    of_place = payers // scale if scale else payers
    busy = np.zeros(len(payers), np.int64)
    np.add.at(busy, payer_of, busy_ns[lines])
    kept = [reserved.get((int(payer // scale), int(payer % scale)), 0) for payer in payers]
    weights = np.array(idle_weights(policy, busy.tolist(), kept), np.int64)
    total = np.zeros(len(idle), np.int64)
    np.add.at(total, of_place, weights)
    idle[total == 0] = 0
    parts = _by_group(idle, weights, of_place)
    result[lines] = _by_group(parts, busy_ns[lines], payer_of)
    return np.where(is_idle & (total > 0)[place_days.of], -values, result)


def _by_group(amounts: Ints, weights: Ints, of: Ints) -> Ints:
    """`share_out` over rows in any order: `of` is each row's place in `amounts`."""
    order = np.argsort(of, kind="stable")
    groups = Segments.from_labels(of[order])
    parts = np.empty_like(weights)
    parts[order] = share_out(amounts[of[order]][groups.starts], weights[order], groups)
    return parts
