"""`farebox step`: how long one step of an engine takes, and on what."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .options import constants_option, gpu_option, json_option, kv_cache_option, model_option, weights_option
from .replicas import find_replica
from .table_text import table_text

if TYPE_CHECKING:
    from ..roofline.configuration import Configuration
    from ..roofline.constants import Constants
    from ..roofline.prediction import StepParts

EPILOG = """\b
Examples
  farebox step --gpu h100 --model llama-3-70b --tp 4 --phase decode --batch 32 --kv-len 1024
  farebox step --gpu h100 --model llama-3-8b --phase prefill --kv-len 4096
  farebox step --gpu h200 --model deepseek-v3 --weights fp8 --tp 8 --batch 64 --kv-len 2048 --json
  farebox step --gpu a100 --model path/to/config.json --batch 8 --kv-len 512
  farebox step --csv measured_steps.csv > predicted.csv

\b
A file of steps
  gpu,model,weights,tp,phase,batch_size,tokens,kv_len
  h100,llama-3-70b,bf16,4,decode,32,32,1024
  h100,llama-3-8b,fp8,1,prefill,2,2048,1024
"""
MOST_SHOWN = 20


@click.command(epilog=EPILOG, short_help="Predict how long a step takes, and on what.")
@gpu_option
@model_option
@click.option("--tp", type=click.IntRange(1), default=1, show_default=True, help="GPUs that share the model.")
@weights_option
@kv_cache_option
@click.option("--phase", type=click.Choice(["decode", "prefill"]), default="decode", show_default=True)
@click.option("--batch", type=click.IntRange(1, 2**31), default=1, show_default=True, help="Sequences in the step.")
@click.option(
    "--kv-len", type=click.IntRange(1, 2**31), default=1024, show_default=True, help="Context of each, in tokens."
)
@click.option("--tokens", type=click.IntRange(1, 2**31), help="Rows in all.  [default: one each, or whole prompts]")
@click.option(
    "--csv",
    "file",
    type=click.Path(path_type=Path, exists=True, dir_okay=False, allow_dash=True),
    help="Predict every row of a file; - reads standard input.",
)
@constants_option
@json_option
def step(
    gpu: str,
    model: str,
    tp: int,
    weights: str,
    kv_cache_dtype: str,
    phase: str,
    batch: int,
    kv_len: int,
    tokens: int | None,
    file: Path | None,
    constants: Path | None,
    as_json: bool,
) -> None:
    """Predict how long one step takes: reading weights, computing, reading KV, starting kernels, all-reduces.

    Constants come from --constants, else from the file that `farebox calibrate` wrote, else with Farebox; a GPU that
    nobody has measured is marked as uncalibrated. Host time between steps is in it only if it was calibrated. Factors
    of a recorded run (`calibrate --requests`) are told as a line of their own: they are what the engine counts with.
    """
    from ..roofline.configuration import Configuration
    from ..roofline.prediction import step_parts

    if file is not None:
        _predict_file(file, constants)
        return
    replica = find_replica(gpu, model, weights, tp, kv_cache_dtype, constants)
    rows = tokens or (batch if phase == "decode" else batch * kv_len)
    one = Configuration.of(replica, phase, batch, rows, kv_len)
    parts = step_parts(replica, one.work)
    _warn(one, batch * kv_len)
    if as_json:
        click.echo(json.dumps(_figures(one, parts, batch, kv_len), indent=2))
    else:
        _print(one, parts, batch, kv_len)


def _predict_file(file: Path, constants: Path | None) -> None:
    """All rows and columns of a file, and predicted_ms; a bad row stays, is told about, and has no prediction."""
    from ..errors import InputError
    from ..roofline import SpecError
    from ..roofline.configuration import REQUIRED, Configuration
    from ..roofline.prediction import kernel_times

    with table_text(file) as lines:
        reader = csv.DictReader(lines, restkey="_more", restval="")
        head = list(reader.fieldnames or ())
        missing = [name for name in REQUIRED if name not in head]
        if missing:
            raise InputError(f"{file}: no column {', '.join(missing)}; needed are {', '.join(REQUIRED)}")
        known = _Known(constants)
        bad: list[str] = []
        rows: list[dict[str, str]] = []
        for row in reader:
            predicted = ""
            try:
                one = Configuration.read(row, known.of(row["gpu"]))
                predicted = f"{kernel_times(one.replica, one.work).total * 1e3:.4f}"
            except SpecError as error:
                bad.append(f"{file}:{reader.line_num}: {error}")
            row.pop("_more", None)
            rows.append(row | {"predicted_ms": predicted})
    page = io.StringIO()
    writer = csv.DictWriter(page, [*(n for n in head if n != "predicted_ms"), "predicted_ms"], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    click.echo(page.getvalue(), nl=False)
    known.tell()
    _tell(bad, len(rows))


def _tell(bad: list[str], rows: int) -> None:
    from ..errors import InputError

    for line in bad[:MOST_SHOWN]:
        click.echo(line, err=True)
    if len(bad) > MOST_SHOWN:
        click.echo(f"… and {len(bad) - MOST_SHOWN} more", err=True)
    if bad and len(bad) == rows:
        raise InputError("no row could be predicted")
    if bad:
        click.echo(f"{len(bad)} of {rows} rows have no prediction", err=True)


class _Known:
    """The constants of every GPU type that a file names, looked up once."""

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self._found: dict[str, Constants] = {}

    def of(self, name: str) -> dict[str, Constants]:
        from ..roofline import gpu
        from ..roofline.constants import find_constants

        device = gpu(name).name
        if device not in self._found:
            self._found[device] = find_constants(device, self._file)
        return self._found

    def tell(self) -> None:
        """Say which constants were used."""
        for device, constants in sorted(self._found.items()):
            kernels_only = "; predicted_ms is its kernels, without the factors of a recorded run"
            told = kernels_only if constants.is_scaled else ""
            click.echo(f"constants of {device}: {constants.origin}{told}", err=True)


def _warn(one: Configuration, kv_tokens: int) -> None:
    """A step that does not fit into memory still has a time, but no engine will run it."""
    from ..roofline import SpecError

    try:
        room = one.replica.kv_blocks(1, int(one.work.rows))
    except SpecError as error:
        click.echo(f"note: {error}", err=True)
        return
    if kv_tokens > room:
        click.echo(f"note: the KV cache holds {room} tokens of the {kv_tokens} that this step reads", err=True)


def _figures(one: Configuration, parts: StepParts, batch: int, kv_len: int) -> dict[str, object]:
    replica = one.replica
    rounded = {name: round(value, 4) for name, value in _named(parts).items()}
    return {
        "gpu": replica.gpu.name,
        "model": replica.model.name,
        "weights": replica.weights,
        "kv_cache_dtype": replica.kv,
        "tp": replica.tp,
        "phase": one.phase,
        "batch_size": batch,
        "tokens": int(one.work.rows),
        "kv_len": kv_len,
        "predicted_ms": round(parts.total_ms, 4),
        "parts_ms": rounded,
        "engine_ms": round(_engine_ms(one, batch, kv_len), 4),
        "calibrated": replica.origin_constants.origin.is_calibrated,
        "scaled": replica.origin_constants.is_scaled,
        "constants": str(replica.origin_constants.origin),
    }


def _print(one: Configuration, parts: StepParts, batch: int, kv_len: int) -> None:
    from .listing import print_table

    replica, origin = one.replica, one.replica.origin_constants.origin
    place = f"{replica.tp}×{replica.gpu.label}" if replica.tp > 1 else replica.gpu.label
    click.echo(f"{replica.model.name} {replica.weights} on {place}: {one.phase} of {batch} × {kv_len} tokens")
    engine_ms = _engine_ms(one, batch, kv_len)
    rows = [(name, f"{ms:9.3f} ms", f"{ms / parts.total_ms:4.0%}") for name, ms in _named(parts).items()]
    rows.append(("step", f"{parts.total_ms:9.3f} ms", "" if origin.is_calibrated else str(origin)))
    if replica.origin_constants.is_scaled:
        rows[-1] = ("kernels", *rows[-1][1:])
        rows.append(("step", f"{engine_ms:9.3f} ms", f"×{engine_ms / parts.total_ms:.2f}: as a recorded run took it"))
    print_table(("part", "       time", ""), rows, "")
    click.echo(f"the engine counts {engine_ms:.3f} ms; constants: {origin}", err=True)


def _named(parts: StepParts) -> dict[str, float]:
    return {
        "weights": parts.weights_ms,
        "compute": parts.compute_ms,
        "KV": parts.kv_ms,
        "overhead": parts.overhead_ms,
        "all-reduce": parts.allreduce_ms,
    }


def _engine_ms(one: Configuration, batch: int, kv_len: int) -> float:
    """What the embedded engine's constants, which add up in integers, make of the same step."""
    from ..roofline import UNITS_PER_NS

    model = one.replica.step_model()
    rows = int(one.work.rows)
    each = max(1, rows // batch)
    attention = batch * model.attention(each, max(0, kv_len - each))
    return model.step(rows, attention) / UNITS_PER_NS / 1e6
