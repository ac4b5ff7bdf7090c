"""`farebox calibrate`: fit the step times of a GPU to what was measured."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import click

from .calibrate_run import calibrate_requests, run_options
from .options import json_option
from .table_text import table_text

if TYPE_CHECKING:
    from ..roofline.calibration.fit import Fit
    from ..roofline.calibration.held_out import Error, HoldOut
    from ..roofline.calibration.timings import Timing
    from ..roofline.kernels import Kernels
    from .calibrate_run import RunFiles

EPILOG = """\b
Examples
  farebox calibrate measured_steps.csv
  farebox calibrate measured_steps.csv --gpu h100 --hold-out model --dry-run
  farebox calibrate STORE --constants h100.toml
  farebox step --gpu h100 --constants h100.toml --batch 32
  farebox calibrate --requests run/requests.jsonl --engine-args run/meta.json

\b
A file of measured steps
  gpu,model,weights,tp,phase,batch_size,tokens,kv_len,measured_ms
  h100,llama-3-70b,bf16,4,decode,32,32,1024,18.1
  h100,llama-3-70b,bf16,4,prefill,1,1024,1024,79.9
With the columns linear_ms, attn_ms, allreduce_ms, head_ms and elem_ms the kernels are fitted one by one.

\b
A file of recorded requests (JSON lines; seconds, the first of the wall clock, the others of vLLM's own)
  {"request_id": "a", "input_toks": 512, "output_toks": 128, "arrival_time": 1787267980.08,
   "queued_ts": 27536.66, "scheduled_ts": 27536.66, "first_token_ts": 27537.35, "last_token_ts": 27554.23}
"""
MOST_SHOWN = 20
FEW_STEPS = 12


@click.command(epilog=EPILOG, short_help="Fit step times to what was measured.")
@click.argument("source", metavar="[FILE|STORE]", required=False, type=click.Path(path_type=Path, exists=True))
@click.option(
    "--gpu", help="Only steps of this GPU type; with --requests: the GPU type, if the recording does not say."
)
@run_options
@click.option(
    "--hold-out",
    type=click.Choice(["quarter", "model", "tp", "batch"]),
    default="quarter",
    show_default=True,
    help="What a fit must predict without having seen it: a quarter of the steps, or each of these in turn.",
)
@click.option(
    "--constants",
    type=click.Path(path_type=Path, dir_okay=False),
    help="File to keep the constants in.  [default: calibration.toml in the user's configuration folder]",
)
@click.option("--afresh", is_flag=True, help="Start from typical values, not from the present constants.")
@click.option("--dry-run", is_flag=True, help="Keep nothing.")
@json_option
def calibrate(
    source: Path | None,
    gpu: str | None,
    recorded: RunFiles | None,
    model: str | None,
    fit_requests: int | None,
    hold_out: HoldOut,
    constants: Path | None,
    afresh: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Fit the constants of a GPU to what was measured: steps, or the requests that a real vLLM served.

    Steps are rows of a CSV file, or what a store has recorded. Requests (--requests) are replayed through the embedded
    engine, scheduled as vLLM does, until their times agree; the first half is fitted and the other half judged.

    Prints how far predictions are off on what the fit has not seen, and how well each constant is known. The constants
    are kept with their origin where `run` and `step` find them.
    """
    from ..roofline.constants import user_file

    place = constants or user_file()
    if (source is None) == (recorded is None):
        raise click.UsageError("name either a file or store of measured steps, or --requests FILE")
    if source is None:
        calibrate_requests(cast("RunFiles", recorded), gpu, model, fit_requests, None if dry_run else place, as_json)
        return
    found = [_calibrated(name, timings, hold_out, afresh) for name, timings in _by_gpu(source, gpu).items()]
    if as_json:
        click.echo(json.dumps([_figures(one) for one in found], indent=2))
    else:
        for one in found:
            _print(one)
    if not dry_run:
        for one in found:
            _keep(one, place, source)
        click.echo(f"kept in {place}", err=True)


class Calibrated(NamedTuple):
    """What was found for a GPU type."""

    gpu: str
    steps: int
    fit: Fit
    unseen: list[Error]
    hold_out: str


def _by_gpu(source: Path, only: str | None) -> dict[str, list[Timing]]:
    from ..errors import InputError
    from ..roofline import gpu as find_gpu

    timings, problems = _timings(source)
    for line in problems[:MOST_SHOWN]:
        click.echo(line, err=True)
    if len(problems) > MOST_SHOWN:
        click.echo(f"… and {len(problems) - MOST_SHOWN} more", err=True)
    wanted = None if only is None else find_gpu(only).name
    grouped: dict[str, list[Timing]] = {}
    for timing in timings:
        if wanted in (None, timing.replica.gpu.name):
            grouped.setdefault(timing.replica.gpu.name, []).append(timing)
    enough = {name: steps for name, steps in grouped.items() if len(steps) >= FEW_STEPS}
    if not enough:
        raise InputError(
            f"{source} holds fewer than {FEW_STEPS} measured steps of {wanted or 'any GPU'}: too few to fit"
        )
    for name in grouped.keys() - enough.keys():
        click.echo(f"{name}: fewer than {FEW_STEPS} steps, passed over", err=True)
    return enough


def _timings(source: Path) -> tuple[list[Timing], list[str]]:
    if source.is_dir():
        from ..collector.recorded_steps import recorded_timings
        from ..storage.store import open_store

        with open_store(source) as store:
            return recorded_timings(store)
    from ..roofline.calibration.table import read_table

    with table_text(source) as lines:
        return read_table(lines, str(source))


def _calibrated(gpu: str, timings: Sequence[Timing], hold_out: HoldOut, afresh: bool) -> Calibrated:
    from ..roofline.calibration.fit import fit
    from ..roofline.calibration.held_out import cross_check

    base = None if afresh else _present(gpu)
    click.echo(f"{gpu}: fitting {len(timings)} steps", err=True)
    return Calibrated(gpu, len(timings), fit(timings, base), cross_check(timings, hold_out, base), hold_out)


def _present(gpu: str) -> Kernels:
    from ..roofline.constants import shipped_constants

    return shipped_constants(gpu).kernels


def _keep(one: Calibrated, place: Path, source: Path) -> None:
    from ..roofline.constants import Constants, Origin, write_constants

    told = "; ".join(map(str, one.unseen))
    origin = Origin(
        source=f"fitted to {one.steps} steps of {source.name}",
        date=datetime.now(UTC).date().isoformat(),
        steps=one.steps,
        errors=f"left out by {one.hold_out}: {told}" if told else "",
    )
    write_constants(place, one.gpu, Constants(one.fit.kernels, origin))


def _figures(one: Calibrated) -> dict[str, Any]:
    return {
        "gpu": one.gpu,
        "steps": one.steps,
        "hold_out": one.hold_out,
        "errors_percent": [error._asdict() for error in one.unseen],
        "constants": asdict(one.fit.kernels),
        "widths": [width._asdict() for width in one.fit.widths],
    }


def _print(one: Calibrated) -> None:
    from .listing import print_table

    click.echo(f"{one.gpu}: {one.steps} steps; errors on steps left out of the fit, by {one.hold_out}")
    rows = [
        (e.weights, e.phase, str(e.steps), f"{e.mean:.1f} %", f"{e.p90:.1f} %", f"{e.bias:+.1f} %") for e in one.unseen
    ]
    print_table(("weights", "phase", "steps", "mean", "p90", "bias"), rows, "  nothing could be left out")
    fixed = [(w.name, f"{w.value:.4g}", f"±{w.deviation:.2g}{_unit(w.name)}") for w in one.fit.widths if w.is_fixed]
    print_table(("constant", "value", "one sigma"), fixed, "")
    loose = [w.name for w in one.fit.widths if not w.is_fixed]
    if loose:
        click.echo(f"not fixed by these steps, left near where they started: {', '.join(loose)}")


def _unit(name: str) -> str:
    return "" if name.endswith(".growth") else " %"
