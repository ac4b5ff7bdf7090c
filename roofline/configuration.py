"""One step as a row of a table describes it: `measured_steps.csv` and files like it."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import NamedTuple

from .constants import Constants
from .errors import SpecError
from .gpu import gpu
from .models import model
from .replica import Replica
from .work import Work

REQUIRED = ("gpu", "model", "weights", "tp", "phase", "batch_size", "tokens", "kv_len")
PHASES = ("prefill", "decode")
MOST = 2**31
"""No step has more sequences, rows or context: the engine's flags end there too."""


class Configuration(NamedTuple):
    """A replica and what it does in one step."""

    replica: Replica
    phase: str
    work: Work

    @classmethod
    def of(cls, replica: Replica, phase: str, batch: int, rows: int, context: int) -> Configuration:
        """`batch` sequences that compute `rows` rows in all and then have `context` tokens each in the cache.

        A prefill with fewer rows than context is a chunk behind what is cached already; a decode with more rows than
        sequences drafts tokens. Raises SpecError for what cannot be.
        """
        if phase not in PHASES:
            raise SpecError(f'phase "{phase}" is not one of {", ".join(PHASES)}')
        if batch < 1 or rows < batch or context < 1:
            raise SpecError(f"{batch} sequences with {rows} rows and {context} tokens of context are no step")
        each = rows / batch
        if each > context:
            raise SpecError(f"{rows} rows of {batch} sequences are more than their context of {context} tokens")
        if phase == "decode":
            return cls(replica, phase, Work(rows, batch, batch, batch * context))
        pairs = batch * (each * (context - each) + each * (each + 1) / 2)
        return cls(replica, phase, Work(rows, batch, 0, 0, rows, pairs))

    @classmethod
    def read(cls, row: Mapping[str, str | None], constants: Mapping[str, Constants] | None = None) -> Configuration:
        """A row with the columns `REQUIRED`; `constants` by GPU type stand in for the shipped ones.

        Raises SpecError that names what is wrong.
        """
        missing = [name for name in REQUIRED if not (row.get(name) or "").strip()]
        if missing:
            raise SpecError(f"no value for {', '.join(missing)}")
        texts = {name: (row[name] or "").strip() for name in REQUIRED}
        device = gpu(texts["gpu"])
        own = (constants or {}).get(device.name)
        weights = texts["weights"].lower()
        replica = Replica(device, model(texts["model"]), weights, _whole("tp", texts), constants=own)
        numbers = (_whole(name, texts) for name in ("batch_size", "tokens", "kv_len"))
        return cls.of(replica, texts["phase"].lower(), *numbers)


def _whole(name: str, texts: Mapping[str, str]) -> int:
    """A whole number, also as "4.0": pandas writes a column so that misses a value somewhere."""
    text = texts[name]
    try:
        value = Decimal(text)
        if value.is_finite() and value == value.to_integral_value() and abs(value) <= MOST:
            return int(value)
    except InvalidOperation:
        pass
    raise SpecError(f'{name} is "{text}"; it must be a whole number up to {MOST:,}')
