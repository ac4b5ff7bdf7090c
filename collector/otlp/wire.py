"""Protobuf's wire format, as far as reading a trace needs it (protobuf.dev, "Encoding").

Seven fields of five messages are read, so a reader of the format is shorter than what generated code would bring along:
a runtime with a compiled part, and versions that must fit those of whatever else is installed.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5


class WireError(ValueError):
    """The bytes are no protobuf message."""


def fields(message: bytes) -> Iterator[tuple[int, int, int | bytes]]:
    """Each field of a message: its number, its wire type, and its value; raises WireError."""
    at, end = 0, len(message)
    while at < end:
        tag, at = _varint(message, at)
        number, kind = tag >> 3, tag & 7
        if kind == VARINT:
            value, at = _varint(message, at)
        elif kind in (FIXED64, FIXED32):
            size = 8 if kind == FIXED64 else 4
            value, at = _bytes(message, at, size)
        elif kind == BYTES:
            size, at = _varint(message, at)
            value, at = _bytes(message, at, size)
        else:
            raise WireError(f"wire type {kind} at byte {at}")
        yield number, kind, value


def messages(message: bytes, number: int) -> Iterator[bytes]:
    """The values of a field that holds messages or texts, in their order."""
    return (value for at, _, value in fields(message) if at == number and isinstance(value, bytes))


def texts(message: bytes, number: int) -> Iterator[str]:
    """The values of a field that holds text."""
    return (value.decode("utf-8", "replace") for value in messages(message, number))


def numbers(message: bytes, number: int) -> Iterator[int]:
    """The values of a field that holds varints."""
    return (value for at, _, value in fields(message) if at == number and isinstance(value, int))


def number(message: bytes, field: int) -> int:
    """The last value of a fixed64 field; 0 (the default) without one."""
    found = [value for at, kind, value in fields(message) if at == field and kind == FIXED64]
    return int.from_bytes(found[-1], "little") if found and isinstance(found[-1], bytes) else 0


def real(message: bytes, field: int) -> float | None:
    """The last value of a field that holds doubles; None without one."""
    found = [value for at, kind, value in fields(message) if at == field and kind == FIXED64]
    return float(struct.unpack("<d", found[-1])[0]) if found and isinstance(found[-1], bytes) else None


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(message) and shift < 64:
        byte = message[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise WireError(f"a number without an end at byte {at}")


def _bytes(message: bytes, at: int, size: int) -> tuple[bytes, int]:
    if at + size > len(message):
        raise WireError(f"{size} bytes expected at byte {at}, {len(message) - at} are left")
    return message[at : at + size], at + size
