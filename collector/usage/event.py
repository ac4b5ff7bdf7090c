"""The event by which a spool is told of a request."""

from __future__ import annotations

from typing import Any

from ...events import Request


def request_event(request: Request) -> dict[str, Any]:
    """The event of a request, told by somebody who sees no steps, and so knows neither its run nor its GPU time."""
    record = request._asdict()
    del record["gpu_ns"], record["run_id"]
    return {"request": record}
