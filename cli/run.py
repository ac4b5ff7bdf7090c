"""`farebox run`: the embedded engine, headless."""

from __future__ import annotations

import json
import signal
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from ..errors import InputError
from .clock import utc_ns
from .engine_options import engine_options
from .fleet import run_fleet
from .options import PRICE
from .progress import Progress
from .recording import recording
from .replicas import tell_constants
from .trace import parse_traces
from .traffic import factor, traffic

if TYPE_CHECKING:
    from ..collector.embedded import EmbeddedEngine
    from ..engine.config import EngineConfig

_FLEET_OPTIONS = {"trace", "fleet", "store", "speed", "load", "limit", "rate", "start", "as_json"}

EPILOG = """\b
Examples
  farebox run --trace synthetic --gpu h100 --model llama-3-8b
  farebox run --trace azure:code.csv,azure:conv.csv --gpu h100 --model llama-3-8b --rate 4.29
  farebox run --trace azure:chat=conv.csv --limit 2000 --load 8 --mode static --max-num-seqs 32
  farebox run --trace mooncake:trace.jsonl --gpu h200 --model llama-3-70b --tp 4 --weights fp8
  farebox run --trace synthetic --model llama-3-70b --tp 4 --num-speculative-tokens 4 --draft-model llama-3-8b
  farebox run --trace synthetic:7 --speed 1 --store live     (and in another terminal: farebox top live)
  farebox run --trace synthetic --fleet examples/fleet/fleet.toml     (several endpoints: docs/engine.md)
"""


@click.command(epilog=EPILOG, short_help="Run the embedded engine on a trace and record it.")
@click.option(
    "--trace",
    required=True,
    metavar="TRACE",
    help="azure:[NAME=]PATH, mooncake:[NAME=]PATH or synthetic[:SEED]; several with commas.",
)
@click.option(
    "--fleet",
    type=click.Path(path_type=Path),
    help="TOML file of endpoints and routes, instead of the flags of one engine.",
)
@engine_options
@click.option(
    "--async-scheduling",
    is_flag=True,
    help="continuous: plan a step while the one before it runs, as vLLM on CUDA does.",
)
@click.option("--store", type=click.Path(path_type=Path), help="Folder to record into.  [default: farebox-runs/RUN_ID]")
@click.option("--speed", default="max", show_default=True, metavar="max|FACTOR", help="Virtual time against real time.")
@click.option("--load", default="1", show_default=True, metavar="X", help="Arrivals X times as dense.")
@click.option("--limit", type=click.IntRange(1), help="Only the first N requests.")
@click.option("--rate", type=PRICE, help="Price of a GPU-hour; kept in the store.")
@click.option(
    "--start", default="2026-01-01T00:00:00Z", show_default=True, help="UTC start of traces with relative stamps."
)
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON.")
def run(
    engine: EmbeddedEngine,
    trace: str,
    fleet: Path | None,
    async_scheduling: bool,
    store: Path | None,
    speed: str,
    load: str,
    limit: int | None,
    rate: Decimal | None,
    start: str,
    as_json: bool,
) -> None:
    """Run the embedded engine on a trace and record every step.

    A run is identified by its inputs and flags: repeating it changes nothing, an interrupted one is completed.
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    from ..collector.embedded import record
    from ..engine.fleet import Fleet
    from ..engine.pace import Pace

    if fleet is not None:
        _refuse_engine_flags()
    endpoints = None if fleet is None else Fleet.from_toml(fleet)
    traces = parse_traces(trace)
    inputs = [*(t.identity() for t in traces), start, load, str(limit)]
    arrivals = traffic(traces, utc_ns(start), factor("--load", load, most=10**6), limit)
    pace = None if speed == "max" else Pace(float(factor("--speed", speed, most=10**6)))
    if endpoints is not None:
        finished = run_fleet(endpoints, arrivals, inputs, store, pace=pace, rate=rate, as_json=as_json)
    else:
        tell_constants(engine.replica)
        engine = replace(engine, async_scheduling=async_scheduling)
        config = engine.config(inputs, has_prefix_ids=any(t.has_prefix_ids for t in traces))
        place = store or Path("farebox-runs") / config.run_id
        with recording(place, pace, rate) as opened, Progress(len(arrivals)) as progress:
            finished = record(config, arrivals, opened, pace=pace, on_tick=lambda recorder: progress.at(recorder.told))
        _summarise(config, place, as_json=as_json)
    if not finished:
        raise KeyboardInterrupt


def _refuse_engine_flags() -> None:
    """With a fleet, what an engine is stands in the file: a flag beside it would be ignored."""
    context = click.get_current_context()
    for option in context.command.params:
        if (
            option.name not in _FLEET_OPTIONS
            and context.get_parameter_source(option.name or "") is ParameterSource.COMMANDLINE
        ):
            raise InputError(f"{option.opts[0]} does not go with --fleet: write it into the fleet file")


def _summarise(config: EngineConfig, place: Path, *, as_json: bool) -> None:
    from ..costing.books import Books
    from ..costing.formats import to_json
    from ..costing.report import build_report
    from ..costing.run_summary import REQUEST_COLUMNS, STEP_COLUMNS, summarise
    from ..events import LEDGER, MINUTE_NS, REQUESTS, STEPS
    from ..storage.store import open_store
    from .summary import print_summary

    with open_store(place) as store:
        runs = store.runs()
        run = next(run for run in runs if (run.engine_id, run.run_id) == (config.engine_id, config.run_id))
        of_engine = None if len(runs) == 1 else run.engine_id  # comparing names takes as long as reading
        steps = store.read(STEPS, STEP_COLUMNS, engine_id=of_engine, coded=True)
        requests = store.read(REQUESTS, REQUEST_COLUMNS, engine_id=of_engine, coded=True)
        summary = summarise(run, steps, requests)
        minutes = run.started_ns // MINUTE_NS * MINUTE_NS, -(-run.wall_end_ns // MINUTE_NS) * MINUTE_NS
        ledger = store.read(LEDGER, start_ns=minutes[0], end_ns=minutes[1], engine_id=run.engine_id)
        bill = build_report(Books(ledger, (run,), rates=tuple(store.rates())))
    if as_json:
        figures = summary.to_dict() | {"store": str(place), "bill": json.loads(to_json(bill))}
        click.echo(json.dumps(figures, indent=2))
    else:
        print_summary(summary, bill, place)
