"""A token price: what the same tokens would cost at an API, or inside the company."""

from typing import Annotated, NamedTuple

from .table import Table, col


class TokenPrice(NamedTuple):
    """Prices per `unit_tokens` tokens of a model and tier in [from, to). Price 0 is free; a missing row is unknown."""

    model: Annotated[str, col("", "the model")]
    tier: Annotated[str, col("", "the served tier")]
    currency: Annotated[str, col("", "ISO 4217 code")]
    unit_tokens: Annotated[int, col("tokens", "tokens that one price buys: 1, 1000 or 1000000")]
    input_price: Annotated[str, col("currency", "of prompt tokens that were not cached, as decimal text")]
    cached_price: Annotated[str | None, col("currency", "of cached prompt tokens; null: the input price")]
    output_price: Annotated[str, col("currency", "of output tokens, reasoning included")]
    from_ns: Annotated[int, col("UTC ns", "first instant it holds; a whole minute")]
    to_ns: Annotated[int | None, col("UTC ns", "first instant it no longer holds; null: open")]
    note: Annotated[str, col("", "where it comes from")]


PRICES = Table(
    "prices", TokenPrice, key=("model", "tier", "from_ns"), time="from_ns", sort=("model", "tier", "from_ns")
)
