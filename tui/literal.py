"""Names from outside (tenants, models, paths, errors) as they are: no markup, nothing invisible."""

from __future__ import annotations

from unicodedata import category

_INVISIBLE = frozenset(("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"))


def literal(text: str, ascii_only: bool = False) -> str:
    """`text` on one line, with control and other invisible characters spelled out as escapes.

    Brackets stay brackets: widgets put the result into `Content` or `Segment`, which read no markup.
    """
    if ascii_only:
        return "".join(c if " " <= c <= "~" else _escape(c) for c in text)
    if text.isascii() and text.isprintable():
        return text
    return "".join(_escape(c) if category(c) in _INVISIBLE else c for c in text)


def _escape(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii")
