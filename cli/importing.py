"""`farebox import`: what people already have, into a store."""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..errors import InputError

if TYPE_CHECKING:
    from ..collector.imports.found import Line
    from ..collector.imports.load import Loader, Outcome

EPILOG = """\b
Examples
  farebox import spendlogs.csv --store mystore                      (LiteLLM, one team a tenant)
  farebox import spendlogs.json --store mystore --tenant-by end_user
  farebox import completions_usage.csv --store mystore              (OpenAI; its projects are tenants)
  farebox import vllm.log --store mystore --tenant chat --tz Europe/Berlin
  farebox import smi.csv --store mystore --host gpu7                (nvidia-smi --query-gpu=... --format=csv -l 5)
  farebox import AzureLLMInferenceTrace_conv.csv --store mystore
  farebox prices import mystore prices.csv                          (requests without GPU time are priced by token)
"""
FORMATS = ("litellm", "openai", "azure", "mooncake", "nvidia-smi", "jsonl", "vllm")
SHOWN = 5
PROGRESS_LINES = 20_000


@click.command("import", epilog=EPILOG, short_help="Take in logs, usage exports and traces that you have.")
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--store", required=True, type=click.Path(path_type=Path), help="Store to record into; made if need be.")
@click.option("--format", "form", type=click.Choice(FORMATS), help="What the files are.  [default: as they look]")
@click.option("--engine", "engine_id", help="Name of the engine in records.  [default: the format's]")
@click.option("--tenant", help="Tenant of every line, whatever it says.")
@click.option("--tenant-by", metavar="COLUMN", help="Column that names the tenant.  [default: team_id, project_id ...]")
@click.option("--host", help="Host that the GPUs of nvidia-smi are in.  [default: this one]")
@click.option("--tz", default="UTC", show_default=True, metavar="ZONE", help="Zone of times that name none.")
@click.option("--rejected", type=click.Path(path_type=Path), help="Where bad lines go.  [default: FILE.rejected]")
@click.option("--json", "as_json", is_flag=True, help="Print what was done as JSON.")
def import_files(
    files: tuple[Path, ...],
    store: Path,
    form: str | None,
    engine_id: str | None,
    tenant: str | None,
    tenant_by: str | None,
    host: str | None,
    tz: str,
    rejected: Path | None,
    as_json: bool,
) -> None:
    """Take requests, sums of usage and GPU samples into a store, each once.

    Requests have no GPU time here: they count, and are priced by token prices. What was imported before changes
    nothing. Lines that are of no use are counted and kept in FILE.rejected with the reason; all others go on.
    """
    from ..collector.imports.formats import detect, named
    from ..collector.imports.found import Context
    from ..collector.imports.load import Loader
    from ..storage.store import create_store

    _check_zone(tz)
    found = [(path, detect(path) if form is None else named(form)) for path in files]
    told: list[dict[str, object]] = []
    with create_store(store) as opened:
        for path, kind in found:
            context = Context(
                engine_id=engine_id or kind.name,
                host=host or (socket.gethostname() if kind.name == "nvidia-smi" else ""),
                tenant=tenant,
                tenant_by=tenant_by,
                at_ns=_modified_ns(path),
                tz=tz,
            )
            outcome = _load(Loader(opened, context), path, kind.read(path, context))
            place = _keep_rejects(outcome, path, rejected)
            told.append(_told(path, kind.name, outcome, place))
            if not as_json:
                _tell(path, kind.name, outcome, place)
        opened.roll()
        opened.compact()
    if as_json:
        click.echo(json.dumps(told, indent=2))
    if not any(each["requests"] or each["samples"] or each["repeated"] or each["saved_requests"] for each in told):
        raise InputError("nothing was imported")


def _load(loader: Loader, path: Path, lines: Iterator[Line]) -> Outcome:
    """Load a file, and say how far it is where somebody watches."""
    watched = sys.stderr.isatty()

    def tell(done: int) -> None:
        if watched and done % PROGRESS_LINES == 0:
            click.echo(f"\r{path.name}: {done:,} lines", nl=False, err=True)

    outcome = loader.load(lines, tell)
    if watched:
        click.echo("\r", nl=False, err=True)
    return outcome


def _keep_rejects(outcome: Outcome, path: Path, rejected: Path | None) -> Path | None:
    """Write the lines that were of no use beside their file; None: there are none, or there is no place for them."""
    if not outcome.rejects:
        return None
    place = rejected or path.with_name(f"{path.name}.rejected")
    rows = (
        {"file": str(path), "line": each.number, "why": str(each.thing), "text": each.text} for each in outcome.rejects
    )
    try:
        with place.open("a" if rejected else "w", encoding="utf-8") as out:
            out.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    except OSError as error:
        click.echo(f"warning: {place}: cannot be written: {error.strerror}", err=True)
        return None
    return place


def _told(path: Path, kind: str, outcome: Outcome, place: Path | None) -> dict[str, object]:
    counts = {name: value for name, value in asdict(outcome).items() if name != "rejects"}
    return {"file": str(path), "format": kind, **counts, "rejects": None if place is None else str(place)}


def _tell(path: Path, kind: str, outcome: Outcome, place: Path | None) -> None:
    parts = [
        f"{outcome.requests:,} requests with {outcome.tokens:,} tokens" if outcome.requests else "",
        f"{outcome.samples:,} GPU samples" if outcome.samples else "",
        f"{outcome.repeated:,} known already" if outcome.repeated else "",
        f"{outcome.saved_requests:,} saved by a cache ({outcome.saved_tokens:,} tokens)"
        if outcome.saved_requests
        else "",
        f"{outcome.odd:,} with more cached than prompt tokens" if outcome.odd else "",
        f"{outcome.rejected:,} rejected" if outcome.rejected else "",
    ]
    click.echo(f"{path} ({kind}): {', '.join(part for part in parts if part) or 'nothing in it'}")
    for line in outcome.rejects[:SHOWN]:
        click.echo(f"  line {line.number}: {line.thing}", err=True)
    if place is not None:
        click.echo(f"  rejected lines are in {place}", err=True)


def _modified_ns(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None


def _check_zone(name: str) -> None:
    from zoneinfo import ZoneInfo

    try:
        ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise InputError(f"--tz {name}: no such zone; write it as Europe/Berlin") from None
