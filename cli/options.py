"""Options and arguments that several commands share."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

import click


class AmountType(click.ParamType[Decimal]):
    """Zero or more, as exact decimal text: a price, an amount, a share."""

    def __init__(self, name: str, example: str) -> None:
        self.name = name
        self._example = example

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Decimal:
        """Read an amount; negative, endless or unreadable ones are refused."""
        try:
            return amount(str(value).removeprefix("$"))
        except ValueError as error:
            article = "an" if self.name[0] in "aeiou" else "a"
            hint = str(error) or f"write it as {self._example}"
            self.fail(f"{value!r} is not {article} {self.name}; {hint}", param, ctx)


class ReasonType(click.ParamType[str]):
    """Why something was changed: a line of text for those who ask later."""

    name = "TEXT"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Read a reason as one line; an empty one is refused."""
        text = " ".join("".join(char if char.isprintable() else " " for char in str(value)).split())
        return text or self.fail("say why, in a few words", param, ctx)


LONGEST_NAME = 128


class NameType(click.ParamType[str]):
    """What somebody is called: a short line without characters that hide or move a cursor."""

    def __init__(self, name: str = "TEXT", *, may_be_empty: bool = True) -> None:
        self.name = name
        self._may_be_empty = may_be_empty

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Read a name; one that screens, files and proxies could not carry is refused."""
        try:
            name = checked_name(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)
        return name if name or self._may_be_empty else self.fail("it is empty", param, ctx)


def checked_name(text: str) -> str:
    """The name without blanks around it, which may be empty; raises ValueError for one that cannot be shown."""
    if not text.isprintable() or len(text) > LONGEST_NAME:
        raise ValueError(f"{text[:20]!r} is no name: write at most {LONGEST_NAME} printable characters on one line")
    return text.strip()


MOST, LEAST = Decimal(10**9), Decimal("1e-9")


def amount(text: str) -> Decimal:
    """Decimal text as an exact amount; raises ValueError unless it is a number of zero or more."""
    try:
        value = Decimal(text.strip())
    except InvalidOperation:
        raise ValueError from None
    if not value.is_finite() or value < 0:
        raise ValueError("it must be zero or more")
    if value > MOST or 0 < value < LEAST:
        raise ValueError("nothing costs that much or that little")
    return value


class CurrencyType(click.ParamType[str]):
    """A currency by its ISO 4217 code."""

    name = "CODE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Read a code of three letters, in either case."""
        try:
            return currency(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)


def currency(text: str) -> str:
    """A currency code in capitals; raises ValueError unless it has three letters."""
    code = text.strip().upper()
    if len(code) != 3 or not code.isascii() or not code.isalpha():
        raise ValueError(f"{text!r} is not a currency; write its ISO 4217 code, as USD or EUR")
    return code


PRICE = AmountType("price", "4.29")
MONEY = AmountType("amount", "1200.50")

named_tenant_argument = click.argument("tenant_id", metavar="TENANT", type=NameType("TENANT", may_be_empty=False))
store_argument = click.argument("store", metavar="STORE", type=click.Path(path_type=Path))
file_argument = click.argument("file", metavar="FILE", type=click.Path(path_type=Path, exists=True, dir_okay=False))
currency_option = click.option(
    "--currency", type=CurrencyType(), default="USD", show_default=True, help="ISO 4217 code."
)
tz_option = click.option(
    "--tz", default="UTC", show_default=True, metavar="ZONE", help="IANA time zone; a date means its midnight there."
)
from_option = click.option(
    "--from",
    "start",
    metavar="TIME",
    help='Since when: 2026-01-01, 2026-01-01T12:00Z or "beginning".  [default: the beginning, for the first one]',
)
to_option = click.option("--to", "end", metavar="TIME", help="Until when.  [default: open]")
replace_option = click.option("--replace", is_flag=True, help="Replace one that starts at the same time.")
note_option = click.option("--note", default="", help="Where it comes from.")
reason_option = click.option("--reason", required=True, type=ReasonType(), help="Why; it is kept.")
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")
output_option = click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="File to write instead of standard output."
)
gpu_option = click.option("--gpu", default="h100", show_default=True, help="GPU type.")
model_option = click.option(
    "--model", default="llama-3-8b", show_default=True, help="Model, or the path of its config.json."
)
weights_option = click.option(
    "--weights",
    type=click.Choice(["bf16", "fp8", "int8", "int4"]),
    default="bf16",
    show_default=True,
    help="Weight format.",
)
kv_cache_option = click.option(
    "--kv-cache-dtype", type=click.Choice(["bf16", "fp8"]), default="bf16", show_default=True, help="KV cache format."
)
constants_option = click.option(
    "--constants",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="File with calibrated constants.  [default: the one `farebox calibrate` wrote, else Farebox's own]",
)
