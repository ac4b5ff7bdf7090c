"""How much of each run is recorded, and the check that a batch continues there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, bindparam, insert, select, update

from ..events import Batch, Progress, Run
from .errors import DuplicateError
from .rows import extent
from .tables import PROGRESS

if TYPE_CHECKING:
    import pyarrow as pa

_C = PROGRESS.c
_OF_RUN = (_C.engine_id == bindparam("engine"), _C.run_id == bindparam("run"))
_FIND = select(_C.steps, _C.requests, _C.covered_ns).where(*_OF_RUN)
_MOVE = update(PROGRESS).where(*_OF_RUN).values({name: bindparam(name) for name in Progress._fields})


def get_progress(connection: Connection, engine_id: str, run_id: str) -> Progress | None:
    """What is recorded of a run; None when nothing is."""
    row = connection.execute(_FIND, {"engine": engine_id, "run": run_id}).first()
    return None if row is None else Progress(*row)


def put_progress(connection: Connection, run: Run, progress: Progress) -> None:
    """Record how far a run has come."""
    known = {"engine": run.engine_id, "run": run.run_id, **progress._asdict()}
    if not connection.execute(_MOVE, known).rowcount:
        key = {"engine_id": run.engine_id, "run_id": run.run_id}
        connection.execute(insert(PROGRESS).values(**key, **progress._asdict()))


def check_continues(stored: Progress | None, batch: Batch) -> None:
    """Raise DuplicateError when a batch tells again what is recorded, ValueError when it contradicts itself."""
    _check_one_run(batch)
    _check_steps(stored, batch)
    _check_requests(stored, batch)
    covered = batch.progress.covered_ns
    if stored is not None and covered < stored.covered_ns:
        raise DuplicateError(
            f"{_name(batch.run)} is in the ledger until {stored.covered_ns}, the batch ends at {covered}"
        )


def _check_steps(stored: Progress | None, batch: Batch) -> None:
    done = 0 if stored is None else stored.steps
    if batch.progress.steps < done:
        raise DuplicateError(f"{_name(batch.run)} has {done} steps recorded, the batch ends at {batch.progress.steps}")
    if batch.steps.num_rows == 0:
        return
    first, last = extent(batch.steps, "step_seq")
    if first < done:
        raise DuplicateError(f"steps {first} to {min(last, done - 1)} of {_name(batch.run)} are already recorded")
    if last >= batch.progress.steps or _repeats(batch.steps, "step_seq"):
        raise ValueError(
            f"batch of {_name(batch.run)}: steps {first} to {last}, but progress says {batch.progress.steps}"
        )


def _check_requests(stored: Progress | None, batch: Batch) -> None:
    done = 0 if stored is None else stored.requests
    told = batch.requests.num_rows
    if done + told > batch.progress.requests:
        raise DuplicateError(
            f"{done} requests of {_name(batch.run)} are already recorded; a batch with {told} more cannot end at"
            f" {batch.progress.requests}: {done + told - batch.progress.requests} of them would count twice"
        )
    if told and _repeats(batch.requests, "request_id"):
        raise DuplicateError(f"a batch of {_name(batch.run)} holds the same request twice")


def _check_one_run(batch: Batch) -> None:
    expected = {"engine_id": batch.run.engine_id, "run_id": batch.run.run_id}
    for rows in (batch.steps, batch.shares, batch.requests):
        if rows.num_rows == 0:
            continue
        for column, value in expected.items():
            found = _distinct(rows.column(column))
            if found not in ([], [value]):
                raise ValueError(f"batch of {_name(batch.run)} holds rows whose {column} is {found}")


def _distinct(column: Any) -> list[Any]:
    """A text column's different values."""
    coded = str(column.type).startswith("dictionary")
    if coded and all(len(chunk.dictionary) == 1 for chunk in column.chunks):
        return list(dict.fromkeys(chunk.dictionary[0].as_py() for chunk in column.chunks if len(chunk)))
    return column.unique().to_pylist()


def _repeats(rows: pa.Table, column: str) -> bool:
    values: Any = rows.column(column)
    if str(values.type) == "int64" and not values.null_count:
        numbers = values.to_numpy()
        if (numbers[1:] > numbers[:-1]).all():
            return False
    return len(values.unique()) < rows.num_rows


def _name(run: Run) -> str:
    return f"run {run.run_id} of engine {run.engine_id}"
