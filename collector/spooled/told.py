"""What a spool tells: its JSON events as records, checked field by field."""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple, cast, get_args

from ...events import REQUESTS, RUNS, SHARES, STEPS, Column, Request, Run, Share, Step, Table, Usage
from ...events.ledger import Account
from ...events.request import FinishReason, Tier
from ...events.run import Clock
from ...events.step import Basis, Phase

_MOST = 2**63
_COUNT_UNITS = ("tokens", "rows", "sequences", "block·ns")
_WORDS: dict[str, tuple[str, ...]] = {
    "account": get_args(Account),
    "basis": get_args(Basis),
    "clock": get_args(Clock),
    "finish_reason": get_args(FinishReason),
    "phase": get_args(Phase),
    "tier": get_args(Tier),
}
_RUN_DEFAULTS: dict[str, Any] = {
    "gpu_type": "unknown",
    "gpu_uuids": [],
    "gpus": 1,
    "model": "unknown",
    "weights": "bf16",
    "mode": "continuous",
    "max_num_seqs": None,
    "clock": "real",
    "load_ns": 0,
}
_STEP_DEFAULTS = {"idle_before_ns": 0, "basis": "step"}
_NEVER_TOLD = {"heartbeat_ns": 0, "prefill_ns": None, "decode_ns": None, "gpu_ns": None}


class ForeignEventError(ValueError):
    """An event that is none, with what is wrong about it."""


class Cell(NamedTuple):
    """A share without its attention time, and the positions that its rows read from the KV cache."""

    share: Share
    attended: int


class StepTold(NamedTuple):
    """A step and its cells, in the order of (account, tenant, tier, phase)."""

    step: Step
    cells: tuple[Cell, ...]


class Beat(NamedTuple):
    """No step that is told later begins before `at_ns`."""

    engine_id: str
    run_id: str
    at_ns: int


class Dropped(NamedTuple):
    """The writer lost so many events here."""

    events: int


Told = Run | StepTold | Request | Usage | Beat | Dropped


def read_event(value: Any) -> Told:
    """The record that an event of a spool stands for; ForeignEventError where it stands for none."""
    event = _as_object("it", value)
    for key, read in _READERS.items():
        if key in event:
            return read(event)
    raise ForeignEventError(f"none of its keys is one of {', '.join(_READERS)}")


def _run(event: Mapping[str, Any]) -> Run:
    given = _object(event, "run")
    run = Run._make(_values(RUNS, {"host": socket.gethostname()} | _RUN_DEFAULTS | given))
    if run.ended_ns is not None and run.ended_ns < run.started_ns:
        raise ForeignEventError("the run ends before it starts")
    return run._replace(heartbeat_ns=run.started_ns)


def _step(event: Mapping[str, Any]) -> StepTold:
    step = Step._make(_values(STEPS, _STEP_DEFAULTS | _object(event, "step")))
    given = _as_list("cells", event.get("cells", []))
    cells = sorted((_cell(step, cell) for cell in given), key=_cell_key)
    if len({_cell_key(cell) for cell in cells}) < len(cells):
        raise ForeignEventError("two cells are of the same account, tenant, tier and phase")
    if step.duration_ns and not cells:
        raise ForeignEventError("it took time and has no cell to pay for it")
    return StepTold(step, tuple(cells))


def _cell(step: Step, given: Any) -> Cell:
    given = _as_object("a cell", given)
    attended = _integer("attended", given.get("attended", 0))
    of_step = {name: getattr(step, name) for name in ("engine_id", "run_id", "step_seq", "started_ns")}
    share = Share._make(_values(SHARES, {"attn": 0} | given | of_step))
    if share.account not in ("tenant", "overhead"):
        raise ForeignEventError(f"an engine does not know what is {share.account}")
    return Cell(share, attended)


def _cell_key(cell: Cell) -> tuple[str, str, str, str]:
    share = cell.share
    return share.account, share.tenant_id, share.tier, share.phase


def _request(event: Mapping[str, Any]) -> Request:
    return Request._make(_values(REQUESTS, {"run_id": ""} | _object(event, "request")))


def _usage(event: Mapping[str, Any]) -> Usage:
    given = _object(event, "usage")
    texts = [_text(name, given.get(name)) for name in ("engine_id", "tenant_id", "tier")]
    numbers = [_integer("at_ns", given.get("at_ns"))]
    numbers += [_integer(name, given.get(name, 0)) for name in ("prompt_tokens", "cached_tokens", "output_tokens")]
    return Usage._make([*texts, *numbers])


def _beat(event: Mapping[str, Any]) -> Beat:
    given = _object(event, "beat")
    engine_id, run_id = (_text(name, given.get(name)) for name in ("engine_id", "run_id"))
    return Beat(engine_id, run_id, _integer("at_ns", given.get("at_ns")))


def _dropped(event: Mapping[str, Any]) -> Dropped:
    return Dropped(_integer("dropped", event["dropped"]))


_READERS: dict[str, Callable[[Mapping[str, Any]], Told]] = {
    "step": _step, "beat": _beat, "request": _request, "usage": _usage, "run": _run, "dropped": _dropped,
}  # fmt: skip


def _object(event: Mapping[str, Any], key: str) -> dict[str, Any]:
    return _as_object(key, event[key])


def _as_object(name: str, value: Any) -> dict[str, Any]:
    if type(value) is not dict:
        raise ForeignEventError(f"{name} is no object")
    return cast(dict[str, Any], value)


def _as_list(name: str, value: Any) -> list[Any]:
    if type(value) is not list:
        raise ForeignEventError(f"{name} is no list")
    return cast(list[Any], value)


def _values(table: Table, given: Mapping[str, Any]) -> list[Any]:
    """The fields of a record in order; what is left out is unknown, or 0 for counts."""
    return [read(column, given) for column, read in _fields(table)]


@lru_cache
def _fields(table: Table) -> tuple[tuple[Column, Callable[[Column, Mapping[str, Any]], Any]], ...]:
    return tuple((column, _reader(column)) for column in table.columns)


def _reader(column: Column) -> Callable[[Column, Mapping[str, Any]], Any]:
    if column.name in _NEVER_TOLD:
        return lambda column, _: _NEVER_TOLD[column.name]
    if column.unit in _COUNT_UNITS and not column.nullable:
        return lambda column, given: _integer(column.name, given.get(column.name, 0))
    return _field


def _field(column: Column, given: Mapping[str, Any]) -> Any:
    value = given.get(column.name)
    if value is None and column.nullable:
        return None
    if column.kind == "int":
        return _integer(column.name, value)
    if column.kind == "str":
        return _text(column.name, value)
    read: Callable[[str, Any], Any] = _text if column.kind == "strs" else _integer
    return tuple(read(column.name, item) for item in _as_list(column.name, value))


def _integer(name: str, value: Any) -> int:
    if type(value) is not int or not 0 <= value < _MOST:
        raise ForeignEventError(f"{name} is {value!r}, not a whole number of 0 or more")
    return value


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise ForeignEventError(f"{name} is {value!r}, not a text")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise ForeignEventError(f"{name} holds half a character") from None
    if name in _WORDS and value not in _WORDS[name]:
        raise ForeignEventError(f"{name} is {value!r}, not one of {', '.join(_WORDS[name])}")
    return value
