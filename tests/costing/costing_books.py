"""Makers of ledgers and of what people set beside them, for the report tests."""

import csv
import json
from datetime import UTC, datetime
from pathlib import Path

from costing_helpers import make_run

from farebox.costing.books import Books
from farebox.events import LEDGER, MINUTE_NS, Capacity, LedgerLine, Rate, Tenant, TokenPrice

HOUR = 3_600_000_000_000
DAY = 24 * HOUR
CASES = Path(__file__).resolve().parents[1] / "cases"


def at(text):
    """An ISO instant as UTC ns."""
    moment = datetime.fromisoformat(text)
    since = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400 + since.seconds) * 10**9 + since.microseconds * 1000


def line(account="tenant", tenant="", gpu_ns=0, start=0, **values):
    """A ledger line of the minute that holds `start` (UTC ns)."""
    rides = account == "tenant"
    made = LedgerLine(
        minute_ns=start // MINUTE_NS * MINUTE_NS,
        engine_id="e",
        host="h",
        gpu_type="H100",
        account=account,
        tenant_id=tenant,
        tier="standard" if rides else "",
        model="m",
        phase="decode" if rides else "",
        gpu_ns=gpu_ns,
        prompt_tokens=0,
        cached_tokens=0,
        output_tokens=0,
        requests=0,
        kv_block_ns=0,
        basis="step",
    )
    return made._replace(**values)


def minutes(account, tenant, start, end, gpus=1, **values):
    """One line for each whole minute of [start, end), all of it used."""
    return [line(account, tenant, gpus * MINUTE_NS, at, **values) for at in range(start, end, MINUTE_NS)]


def books_of(lines, runs=None, **settings):
    """Books of ledger lines; by default one run that took as long as the lines, minute by minute."""
    if runs is None:
        first = min((each.minute_ns for each in lines), default=0)
        last = max((each.minute_ns + MINUTE_NS for each in lines), default=0)
        runs = [make_run(host="h", started_ns=first, ended_ns=last)]
    return Books(LEDGER.to_arrow(lines), tuple(runs), **{name: tuple(rows) for name, rows in settings.items()})


def rate(price="3.99", start=0, end=None, scope="any", name="", currency="USD", note=""):
    return Rate(scope, name, currency, price, None, start, end, note)


def capacity(start, end=None, gpus=1, host="h", gpu_type="H100"):
    return Capacity(host, gpu_type, gpus, start, end, "")


def tenant(tenant_id, team=None, start=0, end=None, name=None, cost_centre=None, reserved=None):
    return Tenant(tenant_id, name or tenant_id, team, cost_centre, reserved, start, end)


def price(
    model="m", tier="standard", unit=1_000_000, fresh="1", cached=None, output="2", start=0, end=None, currency="USD"
):
    return TokenPrice(model, tier, currency, unit, fresh, cached, output, start, end, "")


def read_case(name):
    """A case's input: rows of JSON lines or CSV, or one JSON document."""
    path = CASES / name
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".csv":
        return list(csv.DictReader(text.splitlines()))
    return [json.loads(row) for row in text.splitlines()] if path.suffix == ".jsonl" else json.loads(text)


def read_prices(name):
    """A case's price list as effective-dated records: each price of a model and tier ends where the next one starts."""
    units = {"per_token": 1, "per_1k": 1000, "per_1m": 1_000_000}
    rows = [
        price(
            row["model"],
            row.get("tier") or "",
            units[row["unit"]],
            row["input"],
            row.get("cached_input"),
            row["output"],
            at(row["valid_from"]) if row.get("valid_from") else 0,
        )
        for row in read_case(name)
        if row["unit"]
    ]
    return [_ended(row, rows) for row in rows]


def _ended(row, rows):
    later = [r.from_ns for r in rows if (r.model, r.tier) == (row.model, row.tier) and r.from_ns > row.from_ns]
    return row._replace(to_ns=min(later, default=None))
