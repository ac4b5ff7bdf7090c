"""Totals: what was recorded since the collector began, kept up to date from the newest rows."""

from __future__ import annotations

import threading
import time
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from ..events import LEDGER, STEPS

if TYPE_CHECKING:
    from ..storage.live import LiveReader

_BY = ("engine_id", "host", "gpu_type", "account", "tenant_id", "minute_ns")
_OF = ("gpu_ns", "prompt_tokens", "cached_tokens", "output_tokens", "requests")


class Owner(NamedTuple):
    """Whose the time of an engine is; the tenant is empty for time that is nobody's."""

    engine_id: str
    account: str
    tenant_id: str


class Place(NamedTuple):
    """What a rate is looked up by."""

    engine_id: str
    host: str
    gpu_type: str
    minute_ns: int


class Totals:
    """Sums of ledger lines by owner, and of preemptions by engine. `refresh` adds what is new."""

    def __init__(self, reader: LiveReader) -> None:
        self.began_s = time.time()
        self.gpu_ns: Counter[Owner] = Counter()
        self.prompt_tokens: Counter[Owner] = Counter()
        self.cached_tokens: Counter[Owner] = Counter()
        self.output_tokens: Counter[Owner] = Counter()
        self.requests: Counter[Owner] = Counter()
        self.preemptions: Counter[str] = Counter()
        self._unpriced: dict[tuple[Owner, Place], int] = {}
        self._turn = threading.Lock()
        self._reader = reader
        _, self._line = reader.sums(LEDGER, None, _BY, _OF)
        _, self._step = reader.sums(STEPS, None, ("engine_id",), ("preemptions",))

    def refresh(self) -> None:
        """Add what was recorded since the last time. From any thread."""
        with self._turn:
            self._add()

    def take_unpriced(self) -> dict[tuple[Owner, Place], int]:
        """GPU time that was added since the last call."""
        with self._turn:
            taken, self._unpriced = self._unpriced, {}
        return taken

    def _add(self) -> None:
        lines, self._line = self._reader.sums(LEDGER, self._line, _BY, _OF)
        for engine_id, host, gpu_type, account, tenant_id, minute_ns, *sums in lines:
            owner = Owner(engine_id, account, tenant_id if account == "tenant" else "")
            counts = (self.gpu_ns, self.prompt_tokens, self.cached_tokens, self.output_tokens, self.requests)
            for count, amount in zip(counts, sums, strict=True):
                count[owner] += amount
            key = (owner, Place(engine_id, host, gpu_type, minute_ns))
            self._unpriced[key] = self._unpriced.get(key, 0) + sums[0]
        steps, self._step = self._reader.sums(STEPS, self._step, ("engine_id",), ("preemptions",))
        for engine_id, preemptions in steps:
            self.preemptions[engine_id] += preemptions
