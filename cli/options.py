"""Options that several commands share."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

import click


class RateType(click.ParamType[Decimal]):
    """A price per GPU-hour as exact decimal text."""

    name = "$/GPU-h"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Decimal:
        """Read a price; negative, endless or unreadable ones are refused."""
        try:
            rate = Decimal(str(value).removeprefix("$"))
        except InvalidOperation:
            self.fail(f"{value!r} is not a price; write it as 4.29", param, ctx)
        if not rate.is_finite() or rate < 0:
            self.fail(f"{value!r} is not a price; it must be zero or more", param, ctx)
        return rate


store_argument = click.argument("store", metavar="STORE", type=click.Path(path_type=Path))
