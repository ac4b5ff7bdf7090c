"""`farebox calibrate --requests`: fit the step model to what a real vLLM served."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..errors import InputError

if TYPE_CHECKING:
    from ..calibration.engine_args import EngineArgs
    from ..calibration.fit import Fit
    from ..calibration.judge import PartErrors
    from ..calibration.recorded import Recording
    from ..engine.config import EngineConfig
    from ..roofline import Replica

FEWEST_REQUESTS = 20
"""Requests below which a fit means nothing."""


_FILE = click.Path(path_type=Path, exists=True, dir_okay=False)
_OPTIONS = (
    click.option("--requests", type=_FILE, help="Requests that a real vLLM served, as JSON lines."),
    click.option(
        "--engine-args",
        type=_FILE,
        help="Arguments that it ran with, as JSON.  [default: meta.json beside the requests]",
    ),
    click.option(
        "--prefix-blocks",
        type=_FILE,
        help="Ids of the prompts' full blocks.  [default: prefix_blocks.jsonl beside the requests, if there]",
    ),
    click.option(
        "--timeseries",
        type=_FILE,
        help="CSV with t and running, to judge by.  [default: timeseries.csv beside the requests, if there]",
    ),
    click.option("--model", help="Model, if the engine arguments do not say."),
    click.option(
        "--fit-requests", type=click.IntRange(1), help="How many requests to fit on.  [default: half of them]"
    ),
)


def run_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options that name a recorded run; it gets the files as one argument, `recorded`."""

    @wraps(command)
    def call(
        *,
        requests: Path | None,
        engine_args: Path | None,
        prefix_blocks: Path | None,
        timeseries: Path | None,
        **rest: Any,
    ) -> None:
        files = None if requests is None else RunFiles(requests, engine_args, prefix_blocks, timeseries)
        command(recorded=files, **rest)

    for option in reversed(_OPTIONS):
        call = option(call)
    return call


@dataclass(frozen=True)
class RunFiles:
    """The files of a recorded run; those not named are looked for beside `requests`."""

    requests: Path
    engine_args: Path | None
    prefix_blocks: Path | None
    timeseries: Path | None

    def found(self) -> RunFiles:
        """With the files that lie beside the requests under their usual names; tells which."""
        return RunFiles(
            self.requests,
            self.engine_args or self._beside("meta.json", "engine arguments"),
            self.prefix_blocks or self._beside("prefix_blocks.jsonl", "prefix blocks"),
            self.timeseries or self._beside("timeseries.csv", "time series"),
        )

    def _beside(self, name: str, what: str) -> Path | None:
        path = self.requests.parent / name
        if not path.is_file():
            return None
        click.echo(f"{what}: {path}", err=True)
        return path


def calibrate_requests(
    files: RunFiles, gpu: str | None, model: str | None, fit_requests: int | None, place: Path | None, as_json: bool
) -> None:
    """Fit to a recorded run and print what was found; keep the constants in `place`, if given."""
    one = subject(files, gpu, model, fit_requests)
    found = fitted(one)
    if as_json:
        click.echo(json.dumps(figures(one, found), indent=2))
    else:
        print_fit(one, found)
    if place is not None:
        _keep(one, found, place)
        click.echo(f"kept in {place}", err=True)


@dataclass(frozen=True)
class Subject:
    """What is fitted: a recording, and the engine that it is replayed through."""

    recording: Recording
    replica: Replica
    config: EngineConfig
    fit_requests: int
    ranks: int = 1
    """Data-parallel replicas in lock step."""


def subject(files: RunFiles, gpu: str | None, model: str | None, fit_requests: int | None) -> Subject:
    """Read a run's files; names given here are taken instead of those that the files have."""
    from ..calibration.engine_args import read_engine_args
    from ..calibration.recorded import read_recording
    from ..calibration.setup import config_of, replica_of

    files = files.found()
    if files.engine_args is None:
        raise InputError("--engine-args FILE is missing: the arguments that the vLLM ran with, as JSON")
    beside = [files.engine_args.parent / name for name in ("meta.json", "config.json")]
    more = [path for path in beside if path.is_file() and path != files.engine_args]
    args: EngineArgs = read_engine_args(files.engine_args, *more)
    recording = read_recording(files.requests, files.prefix_blocks, files.timeseries)
    replica = replica_of(args, gpu, model)
    config = config_of(args, replica, cached=files.prefix_blocks is not None)
    count = len(recording.requests)
    first = count // 2 if fit_requests is None else fit_requests
    if not FEWEST_REQUESTS <= first < count:
        raise InputError(
            f"--fit-requests {first}: of the {count} requests in {files.requests}, the fit needs at least "
            f"{FEWEST_REQUESTS}, and judging it another"
        )
    return Subject(recording, replica, config, first, args.data_parallel_size)


def fitted(one: Subject) -> Fit:
    """Fit, with a bar on standard error where somebody watches."""
    from ..calibration.fit import fit

    bar = click.progressbar(length=100, label="replaying", file=sys.stderr, hidden=not sys.stderr.isatty())
    with bar:
        found = fit(
            one.recording,
            one.replica,
            one.config,
            one.fit_requests,
            ranks=one.ranks,
            on_replay=lambda done, most: bar.update(100 * done // most - bar.pos),
        )
        bar.update(100 - bar.pos)
    return found


def figures(one: Subject, found: Fit) -> dict[str, Any]:
    """Everything that was found, for programs."""
    from ..calibration.certainty import entangled, ranges, step_times

    return {
        "gpu": one.replica.gpu.name,
        "model": one.replica.model.name,
        "tensor_parallel_size": one.replica.tp,
        "data_parallel_size": one.ranks,
        "requests": len(one.recording.requests),
        "fit_requests": one.fit_requests,
        "errors": {
            "fit": asdict(found.fitted),
            "held_out": asdict(found.judged),
            "run": asdict(found.run),
        },
        "preemptions": found.replayed.preemptions,
        "cold_start_ns": found.cold_start_ns,
        "scales": asdict(found.scales),
        "constants": [constant._asdict() for constant in ranges(found)],
        "step_times": [step._asdict() for step in step_times(found)],
        "entangled": [pair._asdict() for pair in entangled(found)],
    }


def print_fit(one: Subject, found: Fit) -> None:
    """The errors, the constants with their ranges, and what of them the run does not tell."""
    from ..calibration.certainty import entangled, ranges, step_times
    from .listing import print_table

    replica, count = one.replica, len(one.recording.requests)
    ranks = f", {one.ranks} data-parallel ranks" if one.ranks > 1 else ""
    click.echo(f"{replica.gpu.label}, {replica.model.name}, tp {replica.tp}{ranks}: {count} requests")
    click.echo(f"constants fitted on the first {one.fit_requests}, judged on the other {count - one.fit_requests}")
    print_table(("replayed against recorded", "fit", "held out"), _error_rows(found.fitted, found.judged), "")
    running = "no time series" if found.run.running is None else _percent(found.run.running, signed=False)
    click.echo(f"whole run: makespan {_percent(found.run.makespan)}, riders over time {running}")
    rows = [
        (r.name, _time(r.ns), f"{_time(r.low_ns)} – {_time(r.high_ns)}", "yes" if r.is_told else "no, mostly assumed")
        for r in ranges(found)
    ]
    print_table(("constant", "value", "90 % range", "told by this run"), rows, "")
    for step in step_times(found):
        click.echo(f"a step {step.kind}: {step.ms:.2f} ms ± {100 * step.width:.1f} %")
    for pair in entangled(found):
        relation = "sum" if pair.correlation < 0 else "ratio"
        click.echo(f"not told apart, only their {relation} is: {pair.one} and {pair.other} ({pair.correlation:+.2f})")
    click.echo(f"cold start {found.cold_start_ns / 1e9:.2f} s, preemptions in the replay {found.replayed.preemptions}")


def _error_rows(fitted_errors: PartErrors, judged: PartErrors) -> list[tuple[str, str, str]]:
    rows: list[tuple[str, str, str]] = []
    for name in ("ttft", "tpot"):
        before, after = getattr(fitted_errors, name), getattr(judged, name)
        rows += [
            (
                f"{name.upper()} {figure}",
                _percent(getattr(before, figure, None)),
                _percent(getattr(after, figure, None)),
            )
            for figure in ("mean", "p50", "p90", "p99")
        ]
    return rows


def _percent(value: float | None, signed: bool = True) -> str:
    if value is None:
        return "–"
    return f"{100 * value:{'+' if signed else ''}.2f} %"


def _time(ns: float) -> str:
    for unit, size in (("ms", 1e6), ("µs", 1e3)):
        if ns >= size:
            return f"{ns / size:.3g} {unit}"
    return f"{ns:.3g} ns"


def _keep(one: Subject, found: Fit, place: Path) -> None:
    from ..roofline.constants import Origin, shipped_constants, write_constants

    replica, judged = one.replica, found.judged
    origin = Origin(
        source=f"{one.fit_requests} requests of a vLLM with {replica.model.name} on {replica.tp} GPU(s), replayed",
        date=datetime.now(UTC).date().isoformat(),
        steps=len(found.replayed.steps.rows),
        errors=f"{judged.requests} other requests, mean TPOT {_percent(judged.tpot and judged.tpot.mean)}, "
        f"TTFT {_percent(judged.ttft.mean)}",
    )
    kept = replace(shipped_constants(replica.gpu.name), origin=origin, scales=found.scales)
    write_constants(place, replica.gpu.name, kept)
