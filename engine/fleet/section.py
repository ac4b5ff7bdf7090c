"""A section of a fleet file: its values by key, each checked when it is read, and nothing left over."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from decimal import Decimal, InvalidOperation
from difflib import get_close_matches
from typing import Any, NoReturn, cast

from .errors import FleetError

_NS_PER_S = 10**9
MOST_COUNT = 2**31
MOST_PRICE = 10**9


class Section:
    """One table of the file; `where` is how messages name it."""

    def __init__(self, where: str, values: dict[str, Any]) -> None:
        self._where = where
        self._values = values
        self._known: list[str] = []

    def __contains__(self, key: str) -> bool:
        self._known.append(key)
        return key in self._values

    def value(self, key: str) -> Any:
        """The value of a key as TOML has it; None when it is not given."""
        self._known.append(key)
        return self._values.get(key)

    def text(self, key: str, default: str | None = None) -> str:
        """Text; without a default the key must be there."""
        value = self._given(key, default)
        if not isinstance(value, str):
            self.fail(key, f'write it as text, as {key} = "{value}"')
        return value

    def whole(self, key: str, default: int | None = None) -> int:
        """A whole number; without a default the key must be there."""
        value = self._given(key, default)
        if isinstance(value, bool) or not isinstance(value, int):
            self.fail(key, f"{value!r} is not a whole number")
        return value

    def count(self, key: str) -> int:
        """A whole number that a flag of `farebox run` would take for it; the key must be there."""
        value = self.whole(key)
        if value > MOST_COUNT:
            self.fail(key, f"{value} is more than {MOST_COUNT:,}")
        return value

    def price(self) -> Decimal | None:
        """The key `price`, what a GPU-hour costs; None when it is not given.

        Text only: a TOML number would be a binary fraction.
        """
        return self.decimal(
            "price", lambda price: 0 <= price <= MOST_PRICE, 'is not a price of a GPU-hour; write it as "4.29"'
        )

    def decimal(self, key: str, is_meant: Callable[[Decimal], bool], words: str) -> Decimal | None:
        """An exact number, written as text; None when it is not given. `words` say what a wrong one is not."""
        text = self.text(key, "")
        if not text:
            return None
        try:
            number = Decimal(text)
        except InvalidOperation:
            number = Decimal("NaN")
        if not number.is_finite() or not is_meant(number):
            self.fail(key, f'"{text}" {words}')
        return number

    def flag(self, key: str) -> bool:
        """True or false; the key must be there."""
        value = self._given(key, None)
        if not isinstance(value, bool):
            self.fail(key, f"{value!r} is neither true nor false")
        return value

    def seconds(self, key: str, most: int) -> int | None:
        """Seconds from 0 to `most` as nanoseconds; None when the key is not given."""
        value = self.value(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= most:
            self.fail(key, f"{value!r} is not a number of seconds between 0 and {most:,}")
        return round(value * _NS_PER_S)

    def sections(self, key: str, name: str = "") -> list[Section]:
        """The tables of `[[key]]`; messages name each by the value of `name`, or by its number from 1."""
        value = self.value(key)
        tables: list[Any] = cast(list[Any], value) if isinstance(value, list) else [value] * (value is not None)
        if not all(isinstance(table, dict) for table in tables):
            self.fail(key, f"write each as a table of its own, under [[{key}]]")
        return [Section(f"{key} {_named(table.get(name), number)}", table) for number, table in enumerate(tables, 1)]

    def refuse_others(self) -> None:
        """Refuse keys that nothing has asked for."""
        for key in self._values:
            if key not in self._known:
                near = get_close_matches(key, self._known, n=1)
                hint = f"did you mean {near[0]}?" if near else f"known keys: {', '.join(dict.fromkeys(self._known))}"
                self.fail(key, f"there is no such key; {hint}")

    def fail(self, key: str, message: str) -> NoReturn:
        """Refuse the value of a key; an empty key means the section as a whole."""
        raise FleetError(": ".join(part for part in (self._where, key, message) if part))

    @contextmanager
    def reading(self, key: str = "") -> Generator[None]:
        """Name the section and the key in whatever is found wrong meanwhile; flags in a message are keys here."""
        try:
            yield
        except FleetError as error:
            if self._where and str(error).startswith(self._where):
                raise
            self.fail(key, str(error))
        except ValueError as error:
            self.fail(key, str(error).replace("--", ""))

    def _given(self, key: str, default: Any) -> Any:
        value = self.value(key)
        if value is None and default is None:
            self.fail(key, "it is missing")
        return default if value is None else value


def _named(name: object, number: int) -> str:
    return f'"{name}"' if isinstance(name, str) and name else str(number)
