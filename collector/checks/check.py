"""One finding of the doctor."""

from __future__ import annotations

from typing import Literal, NamedTuple

Level = Literal["ok", "note", "bad"]


class Check(NamedTuple):
    """What was looked at, how it is, and what to do about it; a `note` is worth knowing and breaks nothing."""

    name: str
    level: Level
    says: str
    advice: str | None = None
