"""Names of rows as one number each: what rows are summed by, without looking at a text twice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

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

    @classmethod
    def join(cls, parts: Sequence[Names]) -> Names:
        """The names of several parts with the same columns, one after the other. Codes rise with the texts."""
        vocabularies = {
            name: sorted({word for part in parts for word in part.vocabularies[name]}) for name in parts[0].vocabularies
        }
        codes: list[Ints] = []
        for part in parts:
            code = np.zeros_like(part.code)
            for name, words in vocabularies.items():
                places = {word: place for place, word in enumerate(words)}
                place_of = np.array([places[word] for word in part.vocabularies[name]], np.int64)
                code = code * max(1, len(words)) + place_of[part._of(name)]
            codes.append(code)
        return cls(np.concatenate(codes), vocabularies)

    @property
    def size(self) -> int:
        """How many different codes there may be."""
        return int(np.prod([max(1, len(words)) for words in self.vocabularies.values()], dtype=np.int64))

    def are(self, name: str, text: str) -> Bools:
        """Where a column has a text (bool[rows])."""
        every = self._replace(code=np.arange(self.size))
        place = self.vocabularies[name].index(text) if text in self.vocabularies[name] else -1
        return (every._of(name) == place)[self.code]

    def of(self, code: Ints) -> Names:
        """The names that codes stand for."""
        return self._replace(code=code)

    def texts(self) -> dict[str, list[str]]:
        """The texts of every column."""
        return {name: [words[code] for code in self._of(name).tolist()] for name, words in self.vocabularies.items()}

    def _of(self, name: str) -> Ints:
        """Each row's place in the vocabulary of a column."""
        code = self.code
        for other, words in reversed(self.vocabularies.items()):
            size = max(1, len(words))
            if other == name:
                return code % size
            code = code // size
        raise KeyError(name)


def sum_by(place: Ints, *columns: Ints) -> tuple[Ints, list[Ints]]:
    """Sums of columns (int64[rows]) over rows of equal `place` (int64[rows], ≥ 0): the places that occur, and the sums
    of each column at them.
    """
    size = int(place.max(initial=-1)) + 1
    if size <= len(place):
        distinct = np.flatnonzero(np.bincount(place, minlength=size))
        return distinct, [_summed(place, column, size)[distinct] for column in columns]
    distinct, at = np.unique(place, return_inverse=True)
    return distinct, [_summed(at, column, len(distinct)) for column in columns]


def _summed(place: Ints, column: Ints, size: int) -> Ints:
    sums = np.zeros(size, np.int64)
    np.add.at(sums, place, column)
    return sums
