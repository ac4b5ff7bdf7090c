"""Events that cannot be recorded: kept beside the store with the reason, for whoever wants to know."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

FOLDER = "aside"
MOST_BYTES = 64 * 2**20
"""How large the file of one writer may grow; what comes then is only counted."""


class Aside:
    """Appends one writer's refused events to `STORE/aside/WRITER.jsonl`; `count` is how many there were."""

    def __init__(self, store: Path, writer: str) -> None:
        self.path = store / FOLDER / f"{writer}.jsonl"
        self.count = 0

    def put(self, event: Any, why: str) -> None:
        """Keep an event; a disk that has no room for it costs the copy, not the count."""
        self.count += 1
        line = json.dumps({"why": why, "event": event}, ensure_ascii=True) + "\n"
        try:
            self.path.parent.mkdir(mode=0o700, exist_ok=True)
            descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        except OSError:
            return
        with os.fdopen(descriptor, "w") as file:
            if os.fstat(descriptor).st_size < MOST_BYTES:
                file.write(line)
