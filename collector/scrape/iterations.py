"""TensorRT-LLM's JSON page: every iteration since the page was read before, each with its own time."""

from __future__ import annotations

from typing import Any, cast

from ..usage.fields import Json, child
from .mapping import COUNTERS, GAUGES, HISTOGRAMS, Engine
from .page import NotAPageError
from .reading import Reading

NOT_TOLD = "TensorRT-LLM's iterations do not tell it"


class Iterations:
    """Adds iterations up into what counters would say, from the first page on."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._counters = {"computed_tokens": 0.0, "output_tokens": 0.0, "requests": 0.0, "busy_s": 0.0}
        self._newest = -1
        self._gauges: dict[str, float] = {}
        self._facts: dict[str, int] = {}

    def read(self, told: Any) -> Reading:
        """The reading after some more iterations; NotAPageError when it is no list of them."""
        listed = cast("list[dict[str, Any]]", told)
        if not isinstance(told, list) or not all(isinstance(one, dict) for one in cast("list[object]", told)):
            raise NotAPageError("the JSON is not TensorRT-LLM's list of iterations")
        for one in listed:
            self._add(one)
        if not listed:
            self._gauges |= {"running": 0.0} if self._gauges else {}
        nouns = {*GAUGES, *COUNTERS, *HISTOGRAMS} - self._counters.keys() - self._gauges.keys()
        return Reading(
            self.engine,
            gauges=dict(self._gauges),
            kv_ratios=(self._gauges["kv_ratio"],) if "kv_ratio" in self._gauges else (),
            counters=dict(self._counters),
            facts=dict(self._facts),
            missing=dict.fromkeys(nouns, NOT_TOLD),
        )

    def _add(self, one: Json) -> None:
        number = one.get("iter")
        if isinstance(number, int):
            if number < self._newest:
                self._counters = dict.fromkeys(self._counters, 0.0)
            self._newest = number
        batch, kv = child(one, "inflightBatchingStats"), child(one, "kvCacheStats")
        self._counters["busy_s"] += _number(one, "iterLatencyMS") / 1e3
        self._counters["computed_tokens"] += _number(batch, "numCtxTokens")
        self._counters["output_tokens"] += _number(batch, "numGenRequests")
        self._counters["requests"] += _number(one, "numCompletedRequests")
        self._gauges["running"] = _number(one, "numActiveRequests")
        self._gauges["waiting"] = _number(one, "numQueuedRequests")
        blocks = _number(kv, "maxNumBlocks")
        if blocks:
            self._gauges["kv_ratio"] = _number(kv, "usedNumBlocks") / blocks
            self._facts = {"kv_blocks": round(blocks), "block_tokens": round(_number(kv, "tokensPerBlock")) or 1}


def _number(one: Json, name: str) -> float:
    found = one.get(name)
    return float(found) if isinstance(found, int | float) and found >= 0 else 0.0
