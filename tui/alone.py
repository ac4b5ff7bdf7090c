"""What a cell would have taken riding alone, by the run's own step model."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from ..events import Share

UNITS_PER_NS = 1 << 20


@dataclass(frozen=True, slots=True)
class Alone:
    """The constants of a run's step model that say what one rider alone costs, in units of 2⁻²⁰ ns."""

    overhead: int
    weights: int
    row: int
    row_comm: int
    streams: tuple[tuple[int, int], ...] = ()
    ridge: tuple[tuple[int, int], ...] = ()

    @classmethod
    def from_json(cls, text: str | None) -> Alone | None:
        """Read `Run.step_model`; None when the run has none or it is not one."""
        try:
            constants: dict[str, Any] = json.loads(text or "null") or {}
            overhead, weights, row, row_comm = (int(constants[n]) for n in ("overhead", "weights", "row", "row_comm"))
            streams, ridge = (tuple((int(a), int(b)) for a, b in constants.get(n, ())) for n in ("streams", "ridge"))
            return cls(overhead, weights, row, row_comm, streams, ridge)
        except (ValueError, KeyError, TypeError):
            return None

    def units(self, cell: Share) -> int:
        """Time of a tenant's cell if its sequences had run one after the other, each in steps of its own.

        Decodes: every sequence pays the overhead and streams the weights for its own rows. Prefills: the overhead for
        each sequence, but the linear layers once for the cell as it is: alone, a prompt would come in larger chunks. So
        the figure is rather too low than too high. Recomputed rows would not exist alone, and count nothing.
        """
        if cell.account != "tenant" or cell.rows == 0:
            return 0
        seqs = max(1, cell.seqs)
        if cell.phase == "prefill":
            return seqs * self.overhead + self._linear(cell.rows) + cell.attn
        rows, more = divmod(cell.rows, seqs)
        linear = (seqs - more) * self._linear(rows) + more * self._linear(rows + 1)
        return seqs * self.overhead + linear + cell.attn

    def _linear(self, rows: int) -> int:
        if not rows:
            return 0
        streamed = min([self.weights, *(base + slope * rows for base, slope in self.streams)])
        return (
            max([streamed, self.row * rows, *(base + slope * rows for base, slope in self.ridge)])
            + self.row_comm * rows
        )
