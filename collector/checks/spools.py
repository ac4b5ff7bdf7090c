"""Whether spools are taken over, and whether their writers are well."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from ...events import Spooled
from ...storage.spool.lines import segments
from ...storage.spool.reader import SpoolReader, spools
from ...storage.spool.writer import CAP_BYTES
from ...storage.store import Store
from ..aside import FOLDER
from ..spooled.drain import writer_name
from ..spooled.told import Dropped, ForeignEventError, read_event
from .check import Check

MIB = 2**20
_BEHIND_S = 60
_NEARLY_FULL = CAP_BYTES * 4 // 5
_MOST_EVENTS = 20_000


def check_spools(store: Store, root: Path) -> list[Check]:
    """Every writer's spool under a folder: alive or gone, how far it is taken over, damaged lines, lost events."""
    if not root.is_dir():
        return []
    try:
        found = [
            _spool(folder, store.spooled(writer_name(store, folder))) for folder in spools(root) if segments(folder)
        ]
    except OSError as error:
        return [Check(f"spools {root}", "bad", f"cannot read {error.filename}: {error.strerror}", "check its owner")]
    return found or [Check(f"spools {root}", "ok", "no spool waits")]


def check_aside(store: Path) -> list[Check]:
    """Events that could not be recorded."""
    files = sorted((store / FOLDER).glob("*.jsonl"))
    return [
        Check(
            f"aside {path.stem}", "bad", f"events that could not be recorded, {path.stat().st_size // 1024 + 1} KiB",
            f"each line of {path} says why; remove the file once you have seen to it",
        )
        for path in files
    ]  # fmt: skip


def _spool(folder: Path, place: Spooled | None) -> Check:
    reader = SpoolReader(folder, place)
    behind, alive = reader.bytes_behind(), reader.is_written
    newest_s = max(path.stat().st_mtime for path in folder.glob("*.spool"))
    size = sum(path.stat().st_size for path in folder.glob("*.spool"))
    dropped = sum(_dropped(event.value) for event in reader.read(_MOST_EVENTS))
    says = [f"its writer is {'alive' if alive else 'gone'}", f"{behind / MIB:.1f} MiB wait to be recorded"]
    faults = [f"{reader.damaged} damaged lines"] if reader.damaged else []
    faults += [f"{dropped} events lost by the writer"] if dropped else []
    name, told = f"spool {folder.name}", ", ".join([*says, *faults])
    if size > _NEARLY_FULL:
        return Check(name, "bad", told, "at 1 GiB its writer loses events: start `farebox collect`")
    if behind and time.time() - newest_s > _BEHIND_S:
        return Check(name, "bad", told, "nobody takes it over: start `farebox collect`")
    return Check(name, "note" if faults else "ok", told)


def _dropped(value: Any) -> int:
    """How many events an event says that its writer lost."""
    try:
        told = read_event(value)
    except ForeignEventError:
        return 0
    return told.events if isinstance(told, Dropped) else 0
