"""`farebox rates`: what an hour of GPU costs."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..errors import InputError
from . import entering
from .entering import Columns, Values
from .listing import plain, print_records, print_table, when
from .options import (
    MONEY,
    PRICE,
    AmountType,
    amount,
    currency,
    currency_option,
    file_argument,
    from_option,
    json_option,
    note_option,
    replace_option,
    store_argument,
    to_option,
    tz_option,
)
from .rate_changes import end_rate, list_changes, remove_rate
from .rate_scope import described, scope_of, scope_options

if TYPE_CHECKING:
    from ..events import Rate
    from ..storage.settings import Settings

EPILOG = """\b
Examples
  farebox rates add STORE --gpu-type h100 --price 4.29 --from 2026-01-01
  farebox rates add STORE --host node-7 --capex 35000 --years 4 --kw 1.3 --pue 1.3 --per-kwh 0.10 --opex-rate 0.10
  farebox rates import STORE rates.csv          (gpu_type | host | engine, price, currency, from, to, note)
  farebox rates end STORE --gpu-type h100 --at 2026-07-01
  farebox rates remove STORE --gpu-type h100 --from 2026-06-01 --reason "a typo: 42.9 for 4.29"
  farebox rates list STORE
  farebox rates changes STORE
  farebox rates examples
"""
COLUMNS = Columns(("price",), ("gpu_type", "host", "engine", "currency", "from", "to", "note"))
TERMS = ("capex", "years", "kw", "pue", "per_kwh", "opex_rate")
NUMBER = AmountType("number", "1.3")


@click.group(epilog=EPILOG, short_help="Set what an hour of GPU costs.")
def rates() -> None:
    """Set what an hour of GPU costs: per GPU type, host or engine, from one day to another.

    The narrowest rate that fits wins (engine, host, GPU type, any). It starts on a whole minute; older time keeps its
    older price.
    """


for command in (end_rate, remove_rate, list_changes):
    rates.add_command(command)


@rates.command(epilog=EPILOG)
@store_argument
@scope_options
@click.option("--price", type=PRICE, help="Price of one GPU-hour.")
@click.option("--capex", type=MONEY, help="Owned: purchase price of one GPU with its share of the server.")
@click.option("--years", type=NUMBER, help="Owned: years of use.")
@click.option("--kw", type=NUMBER, help="Owned: power that one GPU's share draws, in kW.")
@click.option("--pue", type=NUMBER, help="Owned: power usage effectiveness of the site.  [default: 1]")
@click.option("--per-kwh", type=NUMBER, help="Owned: price of one kWh.")
@click.option("--opex-rate", type=NUMBER, help="Owned: upkeep per year as a part of capex.  [default: 0]")
@currency_option
@from_option
@to_option
@tz_option
@note_option
@replace_option
def add(
    store: Path,
    gpu_type: str | None,
    host: str | None,
    engine: str | None,
    price: Decimal | None,
    currency: str,
    start: str | None,
    end: str | None,
    tz: str,
    note: str,
    replace: bool,
    **terms: Decimal | None,
) -> None:
    """Add a price per GPU-hour, or the terms of ownership that it follows from. It ends the open one before."""
    from ..events import RATES, Rate

    scope, name = scope_of(gpu_type, host, engine)
    text, owned = price_text(price, terms)

    def made(settings: Settings) -> Rate:
        from_ns = entering.start_ns(settings, RATES, (scope, name), start, tz)
        return Rate(scope, name, currency, text, owned, from_ns, entering.end_ns(end, tz), note)

    rate = entering.enter(store, RATES, made, replace=replace)
    click.echo(f"{described(rate)} costs {plain(rate.per_gpu_hour)} {currency} per GPU-hour since {when(rate.from_ns)}")


@rates.command("list", epilog=EPILOG)
@store_argument
@json_option
def list_rates(store: Path, as_json: bool) -> None:
    """List all rates, those that have ended too."""
    from ..storage.store import open_store

    with open_store(store) as opened:
        found = opened.rates()
    if as_json:
        print_records(found)
        return
    rows = [
        (described(r), plain(r.per_gpu_hour), r.currency, when(r.from_ns), when(r.to_ns, "open"), _origin(r))
        for r in found
    ]
    print_table(("for", "per GPU-hour", "", "from", "to", "note"), rows, "no rate: add one with `farebox rates add`")


@rates.command("import", epilog=EPILOG)
@store_argument
@file_argument
@replace_option
def import_rates(store: Path, file: Path, replace: bool) -> None:
    """Import rates from a CSV file: all of it, or nothing when any row is bad.

    Columns: price, and as needed gpu_type, host or engine (none: any GPU), currency (USD), from (the beginning),
    to (open), note. Dates are midnights in UTC.
    """
    from ..events import RATES

    entering.import_csv(store, RATES, file, COLUMNS, _read, replace=replace)


@rates.command(epilog=EPILOG)
@json_option
def examples(as_json: bool) -> None:
    """Print example prices per GPU type, with source and date.

    They are examples: nothing uses them unless you add one as your own rate.
    """
    from .example_rates import example_rates

    found = example_rates()
    if as_json:
        print_records(found)
        return
    rows = [(e.gpu_type, e.price, e.currency, e.level, e.source, e.date) for e in found]
    print_table(("GPU", "per GPU-hour", "", "", "source", "date"), rows, "")
    click.echo("\nExamples, used by nothing. To use one: farebox rates add STORE --gpu-type h100_sxm --price 4.29")


def price_text(price: Decimal | None, terms: dict[str, Decimal | None]) -> tuple[str, str | None]:
    """The exact price as text and, where it follows from ownership, its terms as JSON."""
    from ..costing.rating import ownership_rate

    if price is not None:
        if any(value is not None for value in terms.values()):
            raise InputError("either --price, or the terms of ownership (--capex …), not both")
        return f"{price:f}", None
    known = {"pue": Decimal(1), "opex_rate": Decimal(0)} | {k: v for k, v in terms.items() if v is not None}
    missing = [f"--{name.replace('_', '-')}" for name in TERMS if name not in known]
    if missing:
        raise InputError(f"a rate needs --price, or the terms of ownership; missing: {', '.join(missing)}")
    hourly = ownership_rate(**known)
    return f"{hourly.numerator}/{hourly.denominator}", json.dumps({name: f"{known[name]:f}" for name in TERMS})


def _origin(rate: Rate) -> str:
    if rate.terms is None:
        return rate.note
    terms: dict[str, str] = json.loads(rate.terms)
    return " ".join([*(f"{name} {value}" for name, value in terms.items()), rate.note]).strip()


def _read(values: Values) -> list[Rate]:
    from ..events import Rate

    price = entering.needed(values, "price")
    try:
        text = f"{amount(price):f}"
    except ValueError as error:
        raise ValueError(f"{price!r} is not a price {error}") from None
    scope, name = scope_of(values.get("gpu_type"), values.get("host"), values.get("engine"))
    code = currency(values.get("currency", "USD"))
    from_ns, to_ns = entering.span_of(values, "from", "to")
    return [Rate(scope, name, code, text, None, from_ns, to_ns, values.get("note", ""))]
