"""Draining one spool: its events into the store, each once."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable
from functools import singledispatchmethod
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ...costing.ledger import LedgerError
from ...costing.rule import SplitError
from ...events import Batch, Request, Run, Spooled, Usage
from ...storage.errors import DuplicateError, OverlapError
from ...storage.layout import Layout
from ...storage.spool.lines import segments
from ...storage.spool.reader import Event, SpoolReader
from ..aside import Aside
from .engines import Engines
from .repeats import is_same_request, other_steps, recorded_requests
from .requests_only import RequestsOnly
from .run_books import RunBooks
from .told import Beat, Dropped, ForeignEventError, StepTold, Told, read_event
from .usage_queue import usage_place

if TYPE_CHECKING:
    from ...storage.store import Store

MOST_EVENTS = 20_000
"""Events of one turn: all of them are in memory, and recorded in one transaction."""

RunKey = tuple[str, str]


class _Heard(NamedTuple):
    event: Event
    before: Spooled
    told: Told


class SpoolDrain:
    """One writer's spool. A turn is `load`, then `record`; what fails leaves the store and the spool as they were.

    `aside` keeps what cannot be recorded, `dropped` and `damaged` count what the writer and the disk lost.
    """

    def __init__(self, store: Store, folder: Path, engines: Engines) -> None:
        self.writer = writer_name(store, folder)
        self.dropped = 0
        self.aside = Aside(store.path, folder.name)
        self.lost_runs: list[str] = []
        self._store = store
        self._folder = folder
        self._engines = engines
        self._damaged_before = 0
        self._offered: dict[str, tuple[int, int]] = {}
        self._begin()
        self._reread_usage()

    @property
    def damaged(self) -> int:
        """Lines that were not as they were written."""
        return self._damaged_before + self._reader.damaged

    def bytes_behind(self) -> int:
        """How much is written and not read yet."""
        return self._reader.bytes_behind()

    def _begin(self) -> None:
        """Start from what the store says, forgetting all that is not recorded."""
        self._reader = SpoolReader(self._folder, self._store.spooled(self.writer), self.writer)
        self._recorded_place = self._reader.place
        self._heard: list[_Heard] = []
        self._books: dict[RunKey, RunBooks] = {}
        self._others = RequestsOnly(self._store, self._folder.name)
        self._refused: dict[RunKey, str] = {}
        self._only_seen: set[RunKey] = set()
        self._repeated: defaultdict[RunKey, list[StepTold]] = defaultdict(list)
        self._repeated_requests: list[tuple[Request, Request | None]] = []
        self._has_lost = False

    def load(self) -> int:
        """Read the next events and note whose steps they tell; returns how many there were."""
        place = self._reader.place
        events = 0
        for event in self._reader.read(MOST_EVENTS):
            events += 1
            try:
                told = read_event(event.value)
            except ForeignEventError as error:
                self.aside.put(event.value, str(error))
                continue
            finally:
                before, place = place, event.place
            self._heard.append(_Heard(event, before, told))
            if isinstance(told, Run | StepTold | Beat):
                engine_id = told.step.engine_id if isinstance(told, StepTold) else told.engine_id
                self._engines.tells_steps(engine_id, self.writer)
        return events

    def record(self) -> bool:
        """Record what was loaded, and remove what is recorded; false when the spool is at its end and gone."""
        try:
            for heard in self._heard:
                self._hear(heard)
            self._commit()
        except BaseException:
            self._damaged_before += self._reader.damaged
            self._begin()
            raise
        self._heard = []
        return self._remove()

    # What an event means

    def _hear(self, heard: _Heard) -> None:
        try:
            if isinstance(heard.told, Usage):
                self._offer(heard.told, heard.before, heard.event.place)
            else:
                self._take(heard.told)
        except (ForeignEventError, OverlapError) as error:
            self.aside.put(heard.event.value, str(error))

    @singledispatchmethod
    def _take(self, told: Told) -> None:
        raise TypeError(type(told))

    @_take.register
    def _(self, run: Run) -> None:
        key = (run.engine_id, run.run_id)
        self._refused.pop(key, None)
        books = self._books.get(key) or RunBooks.recorded(self._store, *key)
        if books is not None:
            self._books[key] = books
            books.tell(run)
            return
        try:
            self._store.check_overlap(*key, run.started_ns, run.started_ns + 1)
        except OverlapError as error:
            self._refused[key] = str(error)
            raise
        books = self._books[key] = RunBooks(run._replace(ended_ns=None), None)
        books.tell(run)

    @_take.register
    def _(self, told: StepTold) -> None:
        key = (told.step.engine_id, told.step.run_id)
        books = self._of(key)
        if told.step.step_seq < books.next_seq:
            self._repeated[key].append(told)
        else:
            books.step(told)

    @_take.register
    def _(self, beat: Beat) -> None:
        self._of((beat.engine_id, beat.run_id)).beat(beat.at_ns)

    @_take.register
    def _(self, request: Request) -> None:
        key = (request.engine_id, request.run_id)
        if self._tells_run(key):
            is_new = self._of(key).request(request)
        elif self._engines.is_exact(request.engine_id):
            return  # the engine tells its requests itself
        else:
            is_new = self._others.take(request, tokens=request.engine_id not in self._engines.queues)
        if not is_new:
            self._repeated_requests.append((request, None))

    @_take.register
    def _(self, dropped: Dropped) -> None:
        self.dropped += dropped.events
        self._has_lost = True
        for books in self._books.values():
            books.lose()

    def _tells_run(self, key: RunKey) -> bool:
        """Whether this spool tells the steps of a run, and does not only see its requests."""
        if key in self._books or key in self._refused:
            return True
        if not key[1] or key in self._only_seen:
            return False
        recorded = self._store.run(*key)
        if recorded is None or not recorded.gpus:
            self._only_seen.add(key)
            return False
        return True

    def _of(self, key: RunKey) -> RunBooks:
        if key in self._refused:
            raise ForeignEventError(self._refused[key])
        books = self._books.get(key) or RunBooks.recorded(self._store, *key)
        if books is None:
            raise ForeignEventError(f"run {key[1]} of engine {key[0]} was not told before")
        if self._has_lost and key not in self._books:
            books.lose()
        self._books[key] = books
        return books

    # Usage

    def _offer(self, usage: Usage, before: Spooled, behind: Spooled) -> None:
        queue = self._engines.queue(usage.engine_id)
        if queue is not None and behind.at > self._offered.get(usage.engine_id, (-1, 0)):
            queue.offer(usage, before, behind)
            self._offered[usage.engine_id] = behind.at

    def _reread_usage(self) -> None:
        """Offer again what is recorded and not yet used by an interval."""
        recorded = self._reader.place
        for engine_id in self._engines.queues:
            used = self._store.spooled(usage_place(self.writer, engine_id))
            if used is not None:
                self._offered[engine_id] = used.at
            start = Spooled(self.writer, 0, 0) if used is None else used._replace(writer=self.writer)
            for before, event in _until(recorded, SpoolReader(self._folder, start, self.writer)):
                try:
                    told = read_event(event.value)
                except ForeignEventError:
                    continue
                if isinstance(told, Usage) and told.engine_id == engine_id:
                    self._offer(told, before, event.place)

    # Recording

    def _commit(self) -> None:
        place = self._reader.place
        if place == self._recorded_place:
            return
        now_ns = time.time_ns()
        for books in self._books.values():
            self._set_repeated_apart(books, now_ns)
        self._repeated_requests += self._others.take_repeated(now_ns)
        batches = [*self._batches(), *self._others.batches()]
        if self._repeated or self._repeated_requests:
            self._append(batches, [])
            self._compare(now_ns)
            batches = []
        self._append(batches, [place])
        self._recorded_place = place

    def _set_repeated_apart(self, books: RunBooks, now_ns: int) -> None:
        known = recorded_requests(self._store, books.requests, now_ns)
        for request in books.take_repeated(list(known)):
            self._repeated_requests.append((request, known[request.request_id]))

    def _batches(self) -> Iterable[Batch]:
        for key, books in list(self._books.items()):
            try:
                batch = books.batch()
            except (LedgerError, SplitError) as error:
                self._refuse(key, error)
                continue
            if batch is not None:
                yield batch

    def _append(self, batches: list[Batch], places: list[Spooled]) -> None:
        durable = min(segments(self._folder), default=0) < self._reader.place.segment or not self._reader.is_written
        try:
            self._store.append_all(batches, places, durable=durable)
        except (DuplicateError, OverlapError):
            for batch in batches:
                try:
                    self._store.append_all([batch])
                except (DuplicateError, OverlapError) as error:
                    self._refuse((batch.run.engine_id, batch.run.run_id), error)
            self._store.append_all([], places, durable=durable)

    def _refuse(self, key: RunKey, error: Exception) -> None:
        """Keep aside what a run told this time, and what it tells from now on."""
        self._books.pop(key, None)
        self._refused[key] = str(error)
        for event, _, told in self._heard:
            named = told.step if isinstance(told, StepTold) else told
            if not isinstance(named, Usage | Dropped) and (named.engine_id, named.run_id) == key:
                self.aside.put(event.value, str(error))

    def _compare(self, now_ns: int) -> None:
        """Keep aside what was told again with other content."""
        for told in self._repeated.values():
            for one, why in other_steps(self._store, told):
                self.aside.put(_as_event(one), why)
        for request, recorded in self._repeated_requests:
            named = self._others.named(request)
            before = recorded or recorded_requests(self._store, {named.request_id: named}, now_ns).get(named.request_id)
            if before is None or not is_same_request(before, named):
                self.aside.put({"request": request._asdict()}, "it was told before with other content")
        self._repeated.clear()
        self._repeated_requests = []

    def _remove(self) -> bool:
        """Remove the segments that nobody needs any more; false when that was all."""
        places = [queue.first_place(self.writer) for queue in self._engines.queues.values()]
        floor = min([self._reader.place, *filter(None, places)], key=lambda place: place.at)
        if not self._reader.is_written and self._reader.is_at_end and floor == self._reader.place:
            self.lost_runs += [f"{e}/{r}" for (e, r), books in self._books.items() if books.run.ended_ns is None]
            self._store.forget_spool(self.writer)
            self._engines.is_gone(self.writer)
            self._reader.remove_before(floor)
            return False
        if floor.segment > 0:
            self._reader.remove_before(floor)
        return True


def writer_name(store: Store, folder: Path) -> str:
    """What the places of a spool are called: its name in the store's own folder, its path elsewhere."""
    is_own = folder.parent.resolve() == Layout(store.path).spools.resolve()
    return folder.name if is_own else str(folder.resolve())


def _until(end: Spooled, reader: SpoolReader) -> Iterable[tuple[Spooled, Event]]:
    """Events up to a place, each with the place before it."""
    before = reader.place
    while events := list(reader.read(MOST_EVENTS)):
        for event in events:
            if event.place.at > end.at:
                return
            yield before, event
            before = event.place


def _as_event(told: StepTold) -> dict[str, object]:
    cells = [cell.share._asdict() | {"attended": cell.attended} for cell in told.cells]
    return {"step": told.step._asdict(), "cells": cells}
