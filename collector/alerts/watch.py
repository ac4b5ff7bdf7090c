"""The watch: a rule that holds long enough is told once, and once more when it is over."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ...events import ALERTS, Alert
from ..config.alerts import RuleConfig
from ..totals import Totals
from .finding import WINDOWED, Findings, bounds_of

if TYPE_CHECKING:
    from ...storage.live import LiveReader
    from ...storage.store import Store

PERIOD_S = 5.0
QUIET_S = 60.0
"""How long a rule must not hold until its alert is over, so that what flickers is told once."""

Send = Callable[[Alert], None]
Key = tuple[str, str]


class AlertWatch:
    """Looks from time to time. Alerts are rows of the store, so a restart neither repeats nor forgets one."""

    def __init__(
        self,
        rules: Sequence[RuleConfig],
        store: Store,
        reader: LiveReader,
        totals: Totals,
        send: Send,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._rules = rules
        self._store = store
        self._send = send
        self._clock = clock
        self._findings = Findings(reader, totals, clock)
        self._due_s = clock()
        self._since: dict[Key, float] = {}
        alerts: list[Alert] = store.settings(ALERTS)
        self._open: dict[Key, Alert] = {(one.rule, one.about): one for one in alerts if one.ended_ns is None}
        self._quiet_since: dict[Key, float] = dict.fromkeys(self._open, clock())

    def turn(self) -> None:
        """Look, if it is time."""
        now_s = self._clock()
        if now_s < self._due_s:
            return
        self._due_s = now_s + PERIOD_S
        self._findings.look(max((bounds_of(rule)[1] for rule in self._rules), default=0.0))
        holding: set[Key] = set()
        for rule in self._rules:
            lasts_s = 0.0 if rule.kind in WINDOWED else bounds_of(rule)[1]
            for finding in self._findings.of(rule):
                key = (rule.kind, finding.about)
                holding.add(key)
                self._note(key, finding.text, now_s, lasts_s)
        self._since = {key: since_s for key, since_s in self._since.items() if key in holding}
        for key in [key for key in self._open if key not in holding]:
            if now_s - self._quiet_since.setdefault(key, now_s) >= QUIET_S:
                self._end(key)

    def _note(self, key: Key, text: str, now_s: float, lasts_s: float) -> None:
        lasted_s = now_s - self._since.setdefault(key, now_s)
        self._quiet_since.pop(key, None)
        if key not in self._open and lasted_s >= lasts_s:
            began_ns = time.time_ns() - round(lasted_s * 1e9)
            self._open[key] = Alert(*key, began_ns, None, text)
            self._tell(self._open[key])

    def _end(self, key: Key) -> None:
        del self._quiet_since[key]
        self._tell(self._open.pop(key)._replace(ended_ns=time.time_ns()))

    def _tell(self, alert: Alert) -> None:
        self._store.put(ALERTS, alert)
        self._send(alert)
