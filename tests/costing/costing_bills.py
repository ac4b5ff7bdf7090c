"""Makers of books for the tests of FOCUS, HTML, closings and explanations."""

from datetime import UTC, datetime

from costing_helpers import make_run

from farebox.costing.books import Books
from farebox.costing.periods import Period
from farebox.events import LEDGER, MINUTE_NS, LedgerLine, Rate

HOUR = 3_600_000_000_000
DAY = 24 * HOUR


def at(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()) * 10**9


OCTOBER = Period.parse("2026-10")
START = OCTOBER.from_ns


def line(minute_ns: int = START, account: str = "tenant", **values) -> LedgerLine:
    of_tenant = {"tenant_id": "a", "tier": "standard", "phase": "decode"} if account == "tenant" else {}
    defaults = {
        "engine_id": "e",
        "host": "h",
        "gpu_type": "H100",
        "account": account,
        "tenant_id": "",
        "tier": "",
        "model": "llama",
        "phase": "",
        "gpu_ns": 0,
        "prompt_tokens": 0,
        "cached_tokens": 0,
        "output_tokens": 0,
        "requests": 0,
        "kv_block_ns": 0,
        "basis": "step",
    }
    return LedgerLine(minute_ns=minute_ns, **(defaults | of_tenant | values))


def rate(price: str = "3.99", **values) -> Rate:
    defaults = {"scope": "any", "name": "", "currency": "USD", "terms": None, "from_ns": 0, "to_ns": None, "note": ""}
    return Rate(per_gpu_hour=price, **(defaults | values))


CARD = (rate(),)


def books(lines, rates=CARD, runs=None, **settings) -> Books:
    """Books of ledger lines; unless runs are given, one per engine and minute of a line stands for its wall."""
    lines = list(lines)
    if runs is None:
        runs = [_wall(lines, key) for key in sorted({(x.engine_id, x.host, x.gpu_type, x.minute_ns) for x in lines})]
    return Books(LEDGER.to_arrow(lines), tuple(runs), tuple(rates), **settings)


def _wall(lines, key):
    """A run that takes just the GPU time of the lines of one engine and minute."""
    engine_id, host, gpu_type, minute_ns = key
    gpu_ns = sum(x.gpu_ns for x in lines if (x.engine_id, x.host, x.gpu_type, x.minute_ns) == key)
    span = {"started_ns": minute_ns, "ended_ns": minute_ns + gpu_ns, "heartbeat_ns": minute_ns + gpu_ns}
    return make_run(engine_id=engine_id, run_id=str(minute_ns), host=host, gpu_type=gpu_type, model="llama", **span)


def an_hour(minute_ns: int = START, idle: int = 1_700_000_000_000, **values) -> list[LedgerLine]:
    """The hour of the worked table of idle policies: two tenants, overhead, idle."""
    return [
        line(minute_ns, gpu_ns=1_200_000_000_001, prompt_tokens=200_000, output_tokens=50_000, requests=9, **values),
        line(
            minute_ns, tenant_id="b", gpu_ns=600_000_000_000, prompt_tokens=90, output_tokens=10, requests=1, **values
        ),
        line(minute_ns, "idle", gpu_ns=idle, **values),
        line(minute_ns, "overhead", gpu_ns=99_999_999_999, **values),
    ]


__all__ = ["DAY", "HOUR", "MINUTE_NS", "OCTOBER", "START", "an_hour", "at", "books", "line", "rate"]
