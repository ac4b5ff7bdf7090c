"""`farebox run --fleet`: several endpoints from a file, side by side in one store."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .progress import Progress
from .recording import recording

if TYPE_CHECKING:
    import pyarrow as pa

    from ..costing.endpoint_summary import EndpointSummary
    from ..costing.report import Report
    from ..engine.arrival import Arrival
    from ..engine.fleet import Fleet
    from ..engine.pace import Pace
    from ..events import Run, Table
    from ..storage.store import Store

Keys = frozenset[tuple[str, str]]


def run_fleet(
    fleet: Fleet,
    arrivals: list[Arrival],
    inputs: Sequence[str],
    place: Path | None,
    *,
    pace: Pace | None,
    rate: Decimal | None,
    as_json: bool,
) -> bool:
    """Run a fleet, record all its engines and print their summaries; false if it was interrupted."""
    from ..collector.fleet import record_fleet

    folder = place or Path("farebox-runs") / fleet.run_id(inputs, "", 0)
    with recording(folder, pace, rate) as store, Progress(len(arrivals)) as progress:
        told = record_fleet(fleet, arrivals, store, inputs=inputs, pace=pace, on_tick=progress.at)
    _print(fleet, told.runs, folder, as_json=as_json)
    return told.finished


def price_commands(fleet: Fleet, place: Path) -> list[str]:
    """The commands that make the example prices of a fleet file rates of a store."""
    hosts = {endpoint.engine.host: endpoint for endpoint in fleet.endpoints if endpoint.price is not None}
    return [
        f"farebox rates add {shlex.quote(str(place))} --host {shlex.quote(host)} --price {endpoint.price:f}"
        + (f" --currency {endpoint.currency}" if endpoint.currency != "USD" else "")
        for host, endpoint in hosts.items()
    ]


def _print(fleet: Fleet, keys: Keys, place: Path, *, as_json: bool) -> None:
    from ..costing.formats import to_json
    from ..storage.store import open_store
    from .fleet_summary import print_fleet

    commands = price_commands(fleet, place)
    with open_store(place) as store:
        runs = [run for run in store.runs() if run[:2] in keys]
        summaries = list(_summaries(fleet, runs, store))
        bill = _bill(runs, store)
    if as_json:
        *endpoints, total = (summary.to_dict() for summary in summaries)
        figures = {"endpoints": endpoints, "total": total, "store": str(place), "example_rates": commands}
        click.echo(json.dumps(figures | {"bill": json.loads(to_json(bill))}, indent=2))
    else:
        print_fleet(summaries, bill, place, commands)


def _summaries(fleet: Fleet, runs: Sequence[Run], store: Store) -> Iterator[EndpointSummary]:
    """One for every endpoint, and the last for all of them."""
    from ..costing.endpoint_summary import REQUEST_COLUMNS, STEP_COLUMNS, summarise_endpoint
    from ..events import REQUESTS, STEPS

    steps = _rows(store, STEPS, STEP_COLUMNS, runs)
    requests = _rows(store, REQUESTS, REQUEST_COLUMNS, runs)
    for endpoint in fleet.endpoints:
        names = {endpoint.engine_id(number) for number in range(endpoint.replicas)}
        yield summarise_endpoint(endpoint.name, [run for run in runs if run.engine_id in names], steps, requests)
    yield summarise_endpoint("all", runs, steps, requests)


def _bill(runs: Sequence[Run], store: Store) -> Report:
    from ..costing.books import Books, all_time
    from ..costing.report import build_report
    from ..events import LEDGER

    time = all_time(runs, None)
    ledger = _rows(store, LEDGER, None, runs, (time.from_ns, time.to_ns))
    return build_report(Books(ledger, tuple(runs), rates=tuple(store.rates())))


def _rows(
    store: Store,
    table: Table,
    columns: Sequence[str] | None,
    runs: Sequence[Run],
    span: tuple[int, int] | tuple[None, None] = (None, None),
) -> pa.Table:
    """Rows of the engines that had these runs."""
    import pyarrow as pa

    engines = dict.fromkeys(run.engine_id for run in runs)
    return pa.concat_tables([store.read(table, columns, *span, engine_id=engine_id) for engine_id in engines])
