"""The views of the Tenants page: everybody's trend, and one tenant in detail."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from ..numbers import SECOND_NS, nearest_rank

if TYPE_CHECKING:
    from ...events import Request
    from ..boarding import Kind
    from ..fold import Second
    from ..scene import Ask, Scene
    from ..snapshot import TenantRow

TREND = 10
"""Parts that the window is cut into for a trend."""


@dataclass(frozen=True, slots=True)
class Spread:
    """Nearest-rank percentiles of whole numbers: the median, the 99th and the highest."""

    p50: int
    p99: int
    most: int


@dataclass(frozen=True, slots=True)
class Detail:
    """One tenant in the last minutes: its requests that ended, and what its GPU time was."""

    tenant_id: str
    rows: tuple[TenantRow, ...]
    """One for each tier in the window."""
    requests: int
    prompt: Spread | None
    output: Spread | None
    queue_ns: Spread | None
    ttft_ns: Spread | None
    itl_ns: Spread | None
    reasons: tuple[tuple[str, int], ...]
    preempted: int
    """Requests that were put off the batch at least once."""
    prefill_gpu_ns: int
    decode_gpu_ns: int
    kept_ns: int
    """How far back the requests go."""


@dataclass(frozen=True, slots=True)
class TenantsView:
    """GPU time of each tenant and tier in equal parts of the window, the newest last, and the tenant that is open."""

    trends: dict[Kind, tuple[int, ...]]
    detail: Detail | None


def tenants_ask(tenant_id: str | None) -> Ask:
    """What the page asks for with a tenant open, or with none."""
    return partial(tenants_view, tenant_id)


def tenants_view(tenant_id: str | None, scene: Scene) -> TenantsView:
    """Add up the window's seconds."""
    s = scene.snapshot
    begin = s.now_ns - s.wall_ns
    trends: defaultdict[Kind, list[int]] = defaultdict(lambda: [0] * TREND)
    for number in range(begin // SECOND_NS, s.now_ns // SECOND_NS + 1):
        second = scene.fold.seconds.get(number)
        if second is None or s.wall_ns <= 0:
            continue
        part = min(TREND - 1, max(0, number * SECOND_NS - begin) * TREND // s.wall_ns)
        for kind, usage in second.tenants.items():
            trends[kind][part] += usage.gpu_ns
    told = {kind: tuple(values) for kind, values in trends.items()}
    return TenantsView(told, None if tenant_id is None else _detail(tenant_id, scene))


def _detail(tenant_id: str, scene: Scene) -> Detail:
    from ..fold import KEEP_S

    s = scene.snapshot
    ended = [request for request in scene.fold.requests if request.tenant_id == tenant_id]
    served = [request for request in ended if request.finish_reason != "rejected"]
    prefill, whole = _gpu_ns(tenant_id, scene.fold.window(s.now_ns - s.wall_ns, s.now_ns))
    first = [(r, r.first_token_ns) for r in served if r.first_token_ns is not None]
    return Detail(
        tenant_id=tenant_id,
        rows=tuple(row for row in s.tenants if row.tenant_id == tenant_id),
        requests=len(ended),
        prompt=spread_of(r.prompt_tokens for r in served),
        output=spread_of(r.output_tokens for r in served),
        queue_ns=spread_of(r.scheduled_ns - r.arrived_ns for r in served if r.scheduled_ns is not None),
        ttft_ns=spread_of(at - r.arrived_ns for r, at in first),
        itl_ns=spread_of(_per_token_ns(r, at) for r, at in first if (r.output_tokens or 0) > 1),
        reasons=_reasons(ended),
        preempted=sum(1 for r in ended if r.preemptions),
        prefill_gpu_ns=prefill,
        decode_gpu_ns=whole - prefill,
        kept_ns=min(s.now_ns - scene.fold.first_ns, KEEP_S * SECOND_NS),
    )


def spread_of(values: Iterable[int | None]) -> Spread | None:
    """Percentiles of what is known; None of nothing."""
    found = sorted(value for value in values if value is not None)
    if not found:
        return None
    return Spread(nearest_rank(found, 50), nearest_rank(found, 99), found[-1])


def _per_token_ns(request: Request, first_ns: int) -> int | None:
    """Mean time between a request's tokens after the first."""
    tokens = request.output_tokens
    return None if tokens is None else (request.finished_ns - first_ns) // (tokens - 1)


def _reasons(requests: Sequence[Request]) -> tuple[tuple[str, int], ...]:
    counts = Counter(request.finish_reason for request in requests)
    return tuple(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _gpu_ns(tenant_id: str, seconds: Sequence[Second]) -> tuple[int, int]:
    """GPU time of a tenant's prompts, and of everything it did."""
    used = [usage for second in seconds for kind, usage in second.tenants.items() if kind[0] == tenant_id]
    return sum(usage.prefill_gpu_ns for usage in used), sum(usage.gpu_ns for usage in used)
