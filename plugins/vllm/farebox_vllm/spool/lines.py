"""The lines of a spool: a checksum and one JSON value each, in numbered segments of one folder per writer."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from zlib import crc32

LOCK = "writer.lock"
_SEGMENT = re.compile(r"(\d{8})\.spool")
_CRC_CHARS = 8


def encode(value: Any) -> bytes:
    """One event as a line: the checksum of the JSON text in hexadecimal, a blank, the text, a line end."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass")
    return b"%08x %b\n" % (crc32(text), text)


def decode(line: bytes) -> Any:
    """The event of a line; ValueError when the line is not as it was written."""
    checksum, blank, text = line[:_CRC_CHARS], line[_CRC_CHARS : _CRC_CHARS + 1], line[_CRC_CHARS + 1 :].rstrip(b"\n")
    if blank != b" " or checksum != b"%08x" % crc32(text):
        raise ValueError("the checksum is not that of the line")
    return json.loads(text.decode("utf-8", "surrogatepass"))


def segment_path(folder: Path, number: int) -> Path:
    """The file of a segment."""
    return folder / f"{number:08}.spool"


def segments(folder: Path) -> list[int]:
    """The numbers of a writer's segments, oldest first."""
    found = (_SEGMENT.fullmatch(path.name) for path in folder.iterdir())
    return sorted(int(match[1]) for match in found if match)
