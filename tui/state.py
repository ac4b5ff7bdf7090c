"""What the app remembers between starts: the page, the theme, and how lists are sorted."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from .navigation import FIRST, PAGES


@dataclass
class State:
    """What is remembered; `path` is where, None: nowhere. A file that cannot be read or written is no error."""

    page: str = FIRST
    theme: str = "textual-dark"
    sorts: dict[str, str] = field(default_factory=dict[str, str])
    """By page: the column by which its list is sorted."""
    path: Path | None = None

    @classmethod
    def load(cls, path: Path) -> State:
        """What was remembered at `path`, as far as it makes sense."""
        try:
            kept: dict[str, Any] = dict(json.loads(path.read_text("utf-8")))
            sorts = {str(page): str(column) for page, column in dict(kept.get("sorts", {})).items()}
        except (OSError, ValueError, TypeError):
            return cls(path=path)
        page, theme = str(kept.get("page")), str(kept.get("theme", cls.theme))
        return cls(page if any(page == each.mode for each in PAGES) else FIRST, theme, sorts, path)

    def save(self) -> None:
        """Write it down, whole or not at all."""
        if self.path is None:
            return
        kept = asdict(self)
        del kept["path"]
        beside = self.path.with_suffix(f".{os.getpid()}")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            beside.write_text(json.dumps(kept), "utf-8")
            beside.replace(self.path)
        except OSError:
            beside.unlink(missing_ok=True)


def state_file() -> Path:
    """Where the state of a user is kept: the XDG state folder."""
    home = os.environ.get("XDG_STATE_HOME")
    base = Path(home) if home else Path.home() / ".local" / "state"
    return base / "farebox" / "top.json"
