"""Names of rows as one number each: what rows are summed by, without looking at a text twice."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from . import arrow
from .segments import Bools, Ints


class Names(NamedTuple):
    """Text columns of the same rows, coded together."""

    code: Ints
    """int64[rows]: equal for rows with equal names, below `size`."""
    vocabularies: dict[str, list[str]]

    @classmethod
    def read(cls, size: int, tables: Mapping[str, pa.Table], rows: Mapping[str, Ints]) -> Names:
        """Columns by name of `size` rows, each from its table, at `rows` (int64[rows]) where given."""
        code = np.zeros(size, np.int64)
        vocabularies: dict[str, list[str]] = {}
        for name, table in tables.items():
            own, vocabularies[name] = arrow.coded(table, name)
            if len(vocabularies[name]) > 1:
                code = code * len(vocabularies[name]) + (own[rows[name]] if name in rows else own)
        return cls(code, vocabularies)

    @property
    def size(self) -> int:
        """How many different codes there may be."""
        return int(np.prod([max(1, len(words)) for words in self.vocabularies.values()], dtype=np.int64))

    def are(self, name: str, text: str) -> Bools:
        """Where a column has a text (bool[rows])."""
        every = self._replace(code=np.arange(self.size))
        place = self.vocabularies[name].index(text) if text in self.vocabularies[name] else -1
        return (every._of(name) == place)[self.code]

    def pick(self, rows: Ints | Bools) -> Names:
        """The names of some rows."""
        return self._replace(code=self.code[rows])

    def columns(self) -> dict[str, pa.Array[Any]]:
        """The texts, as Arrow columns."""
        return {name: arrow.words(words, self._of(name)) for name, words in self.vocabularies.items()}

    def _of(self, name: str) -> Ints:
        """Each row's place in the vocabulary of a column."""
        code = self.code
        for other, words in reversed(self.vocabularies.items()):
            size = max(1, len(words))
            if other == name:
                return code % size
            code = code // size
        raise KeyError(name)


def group_rows(major: Ints, minor: Ints, size: int) -> tuple[Ints, Ints]:
    """Order rows by (major, minor), minor below `size`: the order (int64[rows]), and where in it each group starts."""
    if not len(major):
        return major, major
    place = (major - major.min()) * size + minor
    narrow = place.astype(np.uint16) if int(place.max()) < 1 << 16 else place
    order = np.argsort(narrow, kind="stable")
    place = place[order]
    return order, np.flatnonzero(np.append(True, place[1:] != place[:-1]))
