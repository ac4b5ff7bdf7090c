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
_FOLDED = bytes(byte if chr(byte).isascii() and chr(byte).isalnum() else ord("-") for byte in range(256))


def end_to_end(headers: Iterable[tuple[bytes, bytes]], *less: bytes) -> Headers:
    """The headers (names in lower case) that go on to the next hop, duplicates and order kept, without those in `less`.

    RFC 9110 7.6.1: neither the hop's own headers, nor those that `Connection` names. Names are compared as servers of
    the CGI and WSGI kind do, to whom `X_Tenant_Id` is `X-Tenant-Id`.
    """
    headers = list(headers)
    named = {word.strip().lower() for name, value in headers if name == b"connection" for word in value.split(b",")}
    gone = {name.translate(_FOLDED) for name in (*_HOP, *named, *less)}
    return [(name, value) for name, value in headers if name.translate(_FOLDED) not in gone]


def first(headers: Iterable[tuple[bytes, bytes]], name: bytes) -> str | None:
    """The first value of a header; None without one."""
    return next((value.decode("latin-1") for key, value in headers if key == name), None)


def head(line: bytes, headers: Headers) -> bytes:
    """The head of a message: its first line, its headers, and the empty line."""
    return b"".join((line, b"\r\n", *(b"%b: %b\r\n" % each for each in headers), b"\r\n"))
