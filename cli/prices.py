"""`farebox prices`: what tokens would cost at an API, or inside the company."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, get_args

import click

from . import entering
from .entering import Columns, Values
from .listing import print_records, print_table, when
from .names import model_name
from .options import amount, currency, file_argument, json_option, replace_option, store_argument

if TYPE_CHECKING:
    from ..events import TokenPrice

EPILOG = """\b
Examples
  farebox prices import STORE prices.csv
  farebox prices list STORE

\b
A file of prices
  model,tier,unit,input,cached_input,output,valid_from,currency
  llama-3-8b,,per_1m,0.05,,0.08,2026-01-01,USD
  llama-3-70b,fast,per_1k,0.0009,0.00045,0.0009,2026-01-01,USD
"""
COLUMNS = Columns(
    ("model", "input", "output"), ("unit", "tier", "cached_input", "valid_from", "valid_to", "currency", "note")
)
UNITS = {"per_token": 1, "per_1k": 1000, "per_1m": 1_000_000}


@click.group(epilog=EPILOG, short_help="Keep token prices to compare with.")
def prices() -> None:
    """Keep token prices: what the same tokens would have cost at an API, or what one team charges another.

    A price of 0 is free; a model without a price is shown as "no price", never as 0.
    """


@prices.command("import", epilog=EPILOG)
@store_argument
@file_argument
@replace_option
def import_prices(store: Path, file: Path, replace: bool) -> None:
    """Import token prices from a CSV file: all of it, or nothing when any row is bad.

    Every row names its unit (per_token, per_1k or per_1m). Without a tier it is for all of them, without cached_input
    cached tokens cost as much as others, without valid_from it holds from the beginning.
    """
    from ..events import PRICES

    several = "one for each tier where none is named"
    entering.import_csv(store, PRICES, file, COLUMNS, _read, replace=replace, several=several)


@prices.command("list", epilog=EPILOG)
@store_argument
@json_option
def list_prices(store: Path, as_json: bool) -> None:
    """List all token prices, those that have ended too."""
    from ..events import PRICES
    from ..storage.store import open_store

    with open_store(store) as opened:
        found: list[TokenPrice] = opened.settings(PRICES)
    if as_json:
        print_records(found)
        return
    units = {tokens: name for name, tokens in UNITS.items()}
    rows = [
        (
            *(p.model, p.tier, p.input_price, p.cached_price or "as input", p.output_price, p.currency),
            *(units[p.unit_tokens], when(p.from_ns), when(p.to_ns, "open")),
        )
        for p in found
    ]
    head = ("model", "tier", "input", "cached", "output", "", "unit", "from", "to")
    print_table(head, rows, "no token price: import some with `farebox prices import`")


def _read(values: Values) -> list[TokenPrice]:
    from ..events import Tier, TokenPrice

    unit = UNITS.get(entering.needed(values, "unit", f"write {', '.join(UNITS)}"))
    if unit is None:
        raise ValueError(f"unit {values['unit']!r} is none of {', '.join(UNITS)}")
    tiers: tuple[str, ...] = get_args(Tier)
    if "tier" in values and values["tier"] not in tiers:
        raise ValueError(f"tier {values['tier']!r} is none of {', '.join(tiers)}")
    from_ns, to_ns = entering.span_of(values, "valid_from", "valid_to")
    bought = (
        currency(values.get("currency", "USD")),
        unit,
        _price(values, "input"),
        _price(values, "cached_input") if "cached_input" in values else None,
        _price(values, "output"),
    )
    model = model_name(entering.needed(values, "model"))
    chosen = (values["tier"],) if "tier" in values else tiers
    return [TokenPrice(model, tier, *bought, from_ns, to_ns, values.get("note", "")) for tier in chosen]


def _price(values: Values, column: str) -> str:
    text = entering.needed(values, column)
    try:
        return f"{amount(text):f}"
    except ValueError as error:
        raise ValueError(f"{column} {text!r} is not a price {error}".rstrip()) from None
