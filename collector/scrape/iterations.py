"""TensorRT-LLM's JSON page: every iteration since the page was read before, each with its own time."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import Any, cast

from ..usage.fields import Json, child
from .mapping import COUNTERS, GAUGES, HISTOGRAMS, Engine
from .page import NotAPageError
from .reading import Reading

NOT_TOLD = "TensorRT-LLM's iterations do not tell it"
NONE_YET = "no iteration was told yet: TensorRT-LLM tells them with enable_iter_perf_stats, once somebody rides"


class Iterations:
    """Adds iterations up into what counters would say, from the first page on."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._counters = {"computed_tokens": 0.0, "output_tokens": 0.0, "requests": 0.0, "busy_s": 0.0}
        self._newest = -1
        self._gauges: dict[str, float] = {}
        self._kv_ratios: tuple[float, ...] = ()
        self._facts: dict[str, int] = {}

    @property
    def has_any(self) -> bool:
        """Whether an iteration was told yet; without `enable_iter_perf_stats` none ever is."""
        return bool(self._gauges)

    def read(self, told: Any) -> Reading:
        """The reading after some more iterations; NotAPageError when it is no list of them."""
        listed = cast("list[dict[str, Any]]", told)
        if not isinstance(told, list) or not all(isinstance(one, dict) for one in cast("list[object]", told)):
            raise NotAPageError("the JSON is not TensorRT-LLM's list of iterations")
        for _, ranks in groupby(listed, key=lambda one: one.get("iter")):
            self._add(list(ranks))
        if not listed:
            self._gauges |= {"running": 0.0} if self._gauges else {}
        counters = dict(self._counters) if self.has_any else {}
        nouns = {*GAUGES, *COUNTERS, *HISTOGRAMS} - counters.keys() - self._gauges.keys()
        return Reading(
            self.engine,
            gauges=dict(self._gauges),
            kv_ratios=self._kv_ratios,
            counters=counters,
            facts=dict(self._facts),
            missing=dict.fromkeys(nouns, NOT_TOLD if self.has_any else NONE_YET),
        )

    def _add(self, ranks: list[Json]) -> None:
        """Add one iteration, which each of its data-parallel ranks tells: they work at the same time."""
        number = ranks[0].get("iter")
        if isinstance(number, int):
            if number < self._newest:
                self._counters = dict.fromkeys(self._counters, 0.0)
            self._newest = number
        batches = [child(one, "inflightBatchingStats") for one in ranks]
        self._counters["busy_s"] += max(_number(one, "iterLatencyMS") for one in ranks) / 1e3
        self._counters["computed_tokens"] += _sum(batches, "numCtxTokens")
        self._counters["output_tokens"] += _sum(batches, "numGenRequests")
        self._counters["requests"] += _sum(ranks, "numCompletedRequests")
        self._gauges["running"] = _sum(ranks, "numActiveRequests")
        self._gauges["waiting"] = _sum(ranks, "numQueuedRequests")
        pools = [pool for pool in (child(one, "kvCacheStats") for one in ranks) if _number(pool, "maxNumBlocks")]
        if pools:
            self._kv_ratios = tuple(_number(pool, "usedNumBlocks") / _number(pool, "maxNumBlocks") for pool in pools)
            self._gauges["kv_ratio"] = max(self._kv_ratios)
            self._facts = {"kv_blocks": round(_sum(pools, "maxNumBlocks")),
                           "block_tokens": round(_number(pools[0], "tokensPerBlock")) or 1}  # fmt: skip


def _sum(told: Iterable[Json], name: str) -> float:
    return sum(_number(one, name) for one in told)


def _number(one: Json, name: str) -> float:
    found = one.get(name)
    return float(found) if isinstance(found, int | float) and found >= 0 else 0.0
