"""The webhook: alerts as JSON by POST, tried again until somebody takes them."""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any

from ...errors import InputError
from ...events import Alert
from ..config.alerts import AlertsConfig

MOST_WAITING = 1000
LONGEST_S = 300.0
TIMEOUT_S = 10.0
GOODBYE_S = 5.0


class Webhook:
    """Sends alerts from a thread of its own, in order; one that nobody takes waits 1, 2, 4 … 300 s. Use it in `with`.

    The address may be a secret: it is never shown.
    """

    def __init__(self, url: str | None, token: str | None, tell: Callable[[str], None]) -> None:
        self._url, self._token, self._tell = url, token, tell
        self._queue: queue.Queue[Alert | None] = queue.Queue(MOST_WAITING)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="farebox alerts", daemon=True)

    @classmethod
    def of(cls, config: AlertsConfig, tell: Callable[[str], None]) -> Webhook:
        """The webhook of a configuration; without an address alerts are only told. InputError for a missing secret."""
        if config.webhook and config.webhook_env:
            raise InputError("alerts: give webhook or webhook_env, not both")
        url = _secret(config.webhook_env) if config.webhook_env else config.webhook
        return cls(url, _secret(config.token_env) if config.token_env else None, tell)

    def send(self, alert: Alert) -> None:
        """Queue an alert; never waits."""
        self._tell(f"{'resolved' if alert.ended_ns else 'alert'}: {alert.text}")
        if self._url is None:
            return
        try:
            self._queue.put_nowait(alert)
        except queue.Full:
            self._tell(f"alerts: {MOST_WAITING} wait already, this one is not sent")

    def __enter__(self) -> Webhook:
        if self._url is not None:
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        if self._thread.is_alive():
            self._queue.put(None)
            self._thread.join(GOODBYE_S)

    def _run(self) -> None:
        import httpx

        with httpx.Client(timeout=TIMEOUT_S) as client:
            while (alert := self._queue.get()) is not None:
                self._deliver(client, alert)

    def _deliver(self, client: Any, alert: Alert) -> None:
        import httpx

        wait_s, is_first = 1.0, True
        headers = {"Authorization": f"Bearer {self._token}"} if self._token else {}
        while True:
            try:
                answer = client.post(self._url, json=message(alert), headers=headers)
                if answer.is_success:
                    return
                why = f"it answers {answer.status_code}"
            except httpx.HTTPError as error:
                why = type(error).__name__
            except httpx.InvalidURL:
                self._tell("alerts: the webhook's address is none")
                return
            if is_first:
                self._tell(f"alerts: the webhook does not take them ({why}); trying again")
            is_first = False
            if self._stop.wait(wait_s):
                return
            wait_s = min(2 * wait_s, LONGEST_S)


def message(alert: Alert) -> dict[str, Any]:
    """What is sent; chat systems show `text`."""
    status = "firing" if alert.ended_ns is None else "resolved"
    return alert._asdict() | {"status": status, "text": f"{status}: {alert.text}"}


def _secret(variable: str) -> str:
    value = os.environ.get(variable)
    if not value:
        raise InputError(f"alerts: the variable {variable} is not set")
    return value
