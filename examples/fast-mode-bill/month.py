"""Two months of a support team on one large model: as usual, and with its short questions in fast mode.

    python examples/fast-mode-bill/month.py STORE [--days N]

Every working day at 9 the team's reports are due (long answers) while its agents ask short questions. The machine is
rented until the day's work is done. In October the questions ride in fast mode, alone: the same number of requests.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from itertools import takewhile

from farebox.collector.embedded import EmbeddedEngine, record
from farebox.engine.arrival import Arrival
from farebox.engine.workloads.merge import merge
from farebox.engine.workloads.traffic import Lengths, Traffic
from farebox.events import Rate, Tier
from farebox.roofline import Replica, gpu, model
from farebox.storage.store import Store, create_store

MONTHS = (date(2026, 9, 1), date(2026, 10, 1))
PRICES = {"h100_sxm": "4.29", "l40s": "0.99"}
"""Dollars of a GPU-hour, as examples."""
SEATS = 16
QUESTIONS_FOR_S, REPORTS_FOR_S = 900, 300
QUESTIONS_PER_S, REPORTS_PER_S = 0.86, 5.0
"""How long, and how many a second of each, from 9 o'clock on."""


def working_days(first: date, days: int) -> Iterator[date]:
    """The first so many working days of a month."""
    month = (first + timedelta(days=number) for number in range(31))
    working = [day for day in month if day.month == first.month and day.weekday() < 5]
    return iter(working[:days])


def requests(day: date, seed: int, tier: Tier) -> list[Arrival]:
    """A day's traffic; the same seed asks the same."""
    start_ns = int(datetime(day.year, day.month, day.day, 9, tzinfo=UTC).timestamp()) * 10**9
    questions = Traffic("agents", QUESTIONS_PER_S, Lengths(180, 0.5, 20, 480), Lengths(55, 0.4, 8, 160), tier)
    reports = Traffic("reports", REPORTS_PER_S, Lengths(1800, 0.3, 700, 4000), Lengths(550, 0.3, 200, 1200))
    streams = (
        takewhile(lambda a, s=seconds: a.arrived_ns < start_ns + s * 10**9, traffic.arrivals(seed, start_ns))
        for traffic, seconds in ((questions, QUESTIONS_FOR_S), (reports, REPORTS_FOR_S))
    )
    return list(merge(*streams))


def record_month(store: Store, first: date, days: int, *, is_fast: bool) -> None:
    """Record a month, one run per working day."""
    replica = Replica(gpu("h100"), model("llama-3-70b"), tp=4)
    engine = EmbeddedEngine(replica, max_num_seqs=SEATS, fast_cap=1 if is_fast else None, engine_id="support")
    for number, day in enumerate(working_days(first, days)):
        record(engine.config([day.isoformat()]), requests(day, number, "fast" if is_fast else "standard"), store)


def main() -> None:
    """Record both months."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("store")
    parser.add_argument("--days", type=int, default=21, help="working days of each month")
    options = parser.parse_args()
    with create_store(options.store) as store:
        for gpu_type, price in PRICES.items():
            store.put_rate(Rate("gpu_type", gpu_type, "USD", price, None, 0, None, "example"))
        for first, is_fast in zip(MONTHS, (False, True), strict=True):
            record_month(store, first, options.days, is_fast=is_fast)
        store.compact()


if __name__ == "__main__":
    main()
