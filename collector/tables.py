"""Tables of a segment: the jump engine's columns as the rows that other engines tell one by one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from ..costing.cells import Cells
from ..costing.policy_columns import split_cells
from ..costing.segments import Ints, Segments
from ..engine.config import EngineConfig
from ..engine.jump.requests import REASONS, UNKNOWN
from ..engine.jump.spell import Spelled
from ..events import REQUESTS, SHARES, STEPS, Table


class SegmentTables:
    """Steps, shares and requests of a segment, split; texts are coded."""

    def __init__(self, config: EngineConfig, spelled: Spelled) -> None:
        """Split the steps; raises SplitError where they are not the model's time."""
        self._config = config
        cells, steps = spelled.cells, spelled.steps
        size = len(steps.started_ns)
        step_seq = spelled.first + np.arange(size)
        starts = np.flatnonzero(np.append(True, cells.step[1:] != cells.step[:-1]))
        self.step_of = cells.step
        """The step of each cell, from the segment's first (int64[cells])."""
        self.segments = Segments(starts, cells.step)
        is_prefill = np.array([key.phase == "prefill" for key in spelled.keys], np.bool_)[cells.key]
        split = Cells(self.segments, cells.seqs, cells.rows, cells.attn, is_prefill, step_seq, steps.duration_ns)
        ns = split_cells(split, config.step_model, "roofline", np.ones(size, np.bool_))
        prefills, prefill_ns = np.flatnonzero(is_prefill), np.zeros(size, np.int64)
        np.add.at(prefill_ns, cells.step[prefills], ns[prefills])
        self.steps = self._steps(spelled, step_seq, prefill_ns)
        self.shares = self._shares(spelled, step_seq, ns)
        self.requests = self._requests(spelled)

    def _steps(self, spelled: Spelled, step_seq: Ints, prefill_ns: Ints) -> pa.Table:
        steps = spelled.steps
        return _table(
            STEPS,
            len(step_seq),
            {
                **steps._asdict(),
                "engine_id": self._config.engine_id,
                "run_id": self._config.run_id,
                "step_seq": step_seq,
                "gpus": self._config.gpus,
                "prefill_ns": prefill_ns,
                "decode_ns": steps.duration_ns - prefill_ns,
                "kv_blocks_total": self._config.usable_blocks,
                "held_by": None,
                "basis": "step",
            },
        )

    def _shares(self, spelled: Spelled, step_seq: Ints, ns: Ints) -> pa.Table:
        cells, at = spelled.cells, self.step_of
        names = {
            name: _words([getattr(key, name) for key in spelled.keys], cells.key)
            for name in ("account", "tenant_id", "tier", "phase")
        }
        return _table(
            SHARES,
            len(at),
            {
                **names,
                "engine_id": self._config.engine_id,
                "run_id": self._config.run_id,
                "step_seq": step_seq[at],
                "started_ns": spelled.steps.started_ns[at],
                "seqs": cells.seqs,
                "rows": cells.rows,
                "output_tokens": cells.output_tokens,
                "attn": cells.attn,
                "cached_tokens": cells.cached_tokens,
                "kv_block_ns": spelled.kv_block_ns,
                "gpu_ns": ns * self._config.gpus,
            },
        )

    def _requests(self, spelled: Spelled) -> pa.Table:
        r = spelled.requests
        tenants, tiers = zip(*spelled.groups, strict=True)
        return _table(
            REQUESTS,
            len(r.group),
            {
                "request_id": pa.array(r.request_id, pa.string()).dictionary_encode(),
                "engine_id": self._config.engine_id,
                "run_id": self._config.run_id,
                "tenant_id": _words(tenants, r.group),
                "tier": _words(tiers, r.group),
                "model": self._config.model,
                "arrived_ns": r.arrived_ns,
                "scheduled_ns": _known(r.scheduled_ns),
                "first_token_ns": _known(r.first_token_ns),
                "finished_ns": r.finished_ns,
                "prompt_tokens": r.prompt_tokens,
                "cached_tokens": r.cached_tokens,
                "output_tokens": r.output_tokens,
                "reasoning_tokens": None,
                "max_tokens": _known(r.max_tokens),
                "finish_reason": _words(REASONS, r.reason),
                "preemptions": r.preemptions,
                "prefix_ids": pa.array(r.prefix_ids, pa.list_(pa.int64())),
                "gpu_ns": r.gpu_ns,
            },
        )


def _table(table: Table, size: int, columns: Mapping[str, Any]) -> pa.Table:
    """An Arrow table of the given columns: arrays, or one value for all rows (None: unknown); 0 for all others."""
    schema: Any = table.schema
    arrays: list[Any] = []
    fields: list[Any] = []
    for column, field in zip(table.columns, schema, strict=True):
        value = columns.get(column.name, 0)
        if isinstance(value, str):
            value = _same_text(value, size)
        elif isinstance(value, int):
            value = _same_number(value, size)
        elif value is None:
            value = pa.nulls(size, _CODED if column.kind == "str" else pa.int64())
        arrays.append(value if isinstance(value, pa.Array) else pa.array(value))
        fields.append(field.with_type(arrays[-1].type))
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


_CODED = pa.dictionary(pa.int32(), pa.string())


def _words(vocabulary: Sequence[str], codes: Ints) -> pa.Array[Any]:
    """Codes (int64[rows]) as a coded text column; equal texts of the vocabulary get one code."""
    distinct = list(dict.fromkeys(vocabulary))
    code_of = np.array([distinct.index(word) for word in vocabulary], np.int32)
    return _coded(code_of[codes], distinct)


def _same_text(text: str, size: int) -> pa.Array[Any]:
    return _texts(text, _enough(size)).slice(0, size)


def _same_number(number: int, size: int) -> pa.Array[Any]:
    return _numbers(number, _enough(size)).slice(0, size)


def _enough(size: int) -> int:
    """The next power of two: constant columns of about one size are parts of one array."""
    return 1 << (size - 1).bit_length() if size else 0


@lru_cache(maxsize=32)
def _texts(text: str, size: int) -> pa.Array[Any]:
    return _coded(np.zeros(size, np.int32), [text])


def _coded(codes: Any, words: Sequence[str]) -> pa.Array[Any]:
    made: Any = pa.DictionaryArray
    return made.from_arrays(codes, pa.array(words, pa.string()))


@lru_cache(maxsize=16)
def _numbers(number: int, size: int) -> pa.Array[Any]:
    return pa.array(np.full(size, number, np.int64))


def _known(column: Ints) -> pa.Array[Any]:
    return pa.array(column, mask=column == UNKNOWN)
