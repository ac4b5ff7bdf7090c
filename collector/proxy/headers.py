"""Headers between two connections: what belongs to the message travels, what belongs to one hop does not."""

from __future__ import annotations

from collections.abc import Iterable

Headers = list[tuple[bytes, bytes]]

_HOP = frozenset(
    (
        b"connection",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    )
)


def end_to_end(headers: Iterable[tuple[bytes, bytes]], *less: bytes) -> Headers:
    """The headers (names in lower case) that go on to the next hop, duplicates and order kept, without those in `less`.

    RFC 9110 7.6.1: neither the hop's own headers, nor those that `Connection` names.
    """
    headers = list(headers)
    named = {word.strip().lower() for name, value in headers if name == b"connection" for word in value.split(b",")}
    gone = _HOP | named | set(less)
    return [(name, value) for name, value in headers if name not in gone]


def first(headers: Iterable[tuple[bytes, bytes]], name: bytes) -> str | None:
    """The first value of a header; None without one."""
    return next((value.decode("latin-1") for key, value in headers if key == name), None)
