"""The meter: follows one scheduler step by step, on its thread, and queues what happened for the thread that writes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

from .log import LOG
from .ride import Chunk, Ride, waited_ns
from .riders import Group, Riders
from .tenant import take_tenant
from .trip import Trip

MOST_PENDING = 64


class Departure(NamedTuple):
    """A request that ended, with what is known of it then."""

    ride: Ride
    reason: str
    """vLLM's name of the status."""
    output_tokens: int
    finished_ns: int


class Meter:
    """Watches a scheduler through hooks around its methods (`hooks`).

    Requests that decode one row per step are kept in sums (`Riders`) that cost the same for any number of them;
    prompts, resumed requests and those with drafts are looked at one by one. `put` takes Trips and Departures: it must
    not block or raise.
    """

    def __init__(
        self, scheduler: Any, put: Callable[[Any], None], clock: Callable[[], int] = time.monotonic_ns
    ) -> None:
        self._scheduler = scheduler
        self._put = put
        self.clock = clock
        self._block_size: int = scheduler.cache_config.block_size
        pipeline = scheduler.parallel_config.pipeline_parallel_size
        self._is_steady = pipeline == 1 and not getattr(scheduler, "num_spec_tokens", 0)
        """Whether whoever decodes is in every step with one row: without drafts, and without stages to alternate on."""
        self._pool = scheduler.kv_cache_manager.block_pool
        self._counts: Callable[[], tuple[int, int]] = scheduler.get_request_counts
        self._rides: dict[str, Ride] = {}
        self._left: dict[str, Ride] = {}
        self._departures: list[Departure] | None = None
        self._groups: WeakValueDictionary[tuple[str, str], Group] = WeakValueDictionary()
        self._riders = Riders(self._block_size)
        self._irregular: dict[str, Ride] = {}
        self._pending: dict[int, Trip] = {}
        self._preempted = 0
        self._steps = 0
        self._in_flight = False
        self.ended_ns = clock()
        """End of the last step that was told, or the instant from which on steps can be."""

    @property
    def steps(self) -> int:
        """How many steps there were."""
        return self._steps

    def told_ns(self) -> int:
        """An instant before which no step begins that is yet to be told. Asked for by another thread.

        The clock is read first: a step that is seen neither before nor after begins later than that.
        """
        now_ns = self.clock()
        return self.ended_ns if self._in_flight else now_ns

    def arrive(self, request: Any) -> None:
        """A request came (`add_request`)."""
        if request.request_id not in self._rides:
            self._ride(request)

    def enter(self) -> None:
        """`schedule` begins."""
        self._in_flight = True

    def depart(self, scheduled: Any) -> None:
        """`schedule` made a batch: the step begins now, or when the one before it is over."""
        now_ns = self.clock()
        if scheduled.preempted_req_ids:
            self._put_off(scheduled.preempted_req_ids)
        if not scheduled.total_num_scheduled_tokens:
            self._in_flight = bool(self._pending)
            return
        pending, pool = self._pending, self._pool
        running, waiting = self._counts()
        trip = Trip(scheduled, now_ns, running, waiting, pool.num_gpu_blocks - 1 - pool.get_num_free_blocks())
        if self._preempted:
            trip.preemptions, self._preempted = self._preempted, 0
        self._board(trip)
        pending[id(scheduled)] = trip
        if len(pending) > MOST_PENDING:
            del pending[next(iter(pending))]
            raise RuntimeError(f"{MOST_PENDING} batches were scheduled and never came back")

    def arrived(self, scheduled: Any, model_output: Any) -> Trip | None:
        """`update_from_output` begins; gives the trip that is over, to be handed to `told`."""
        trip = self._pending.pop(id(scheduled), None)
        if trip is None:
            self._steps += bool(scheduled.total_num_scheduled_tokens)  # a number that is never told: a hole
            return None
        self._departures = []
        if scheduled.scheduled_spec_decode_tokens:
            tokens = model_output.sampled_token_ids or ()
            trip.sampled = dict(zip(model_output.req_ids, map(len, tokens), strict=False))
        return trip

    def told(self, trip: Trip, ended_ns: int, outputs: dict[int, Any]) -> None:
        """`update_from_output` is done: the step that ended at `ended_ns` can be told."""
        trip.step_seq = self._steps
        self._steps += 1
        scheduled_ns = trip.started_ns
        trip.over(self.ended_ns, ended_ns)
        got = 0
        for each in outputs.values():
            got += len(each.outputs)
        if got != trip.expected or trip.sampled is not None:
            trip.count(outputs, self._rides, self._left)
        if trip.chunks:
            self._stamp(trip, scheduled_ns)
        trip.scheduled = None
        self._put(trip)
        self._tell_departures(ended_ns)
        self.ended_ns = ended_ns
        self._in_flight = bool(self._pending)

    def left(self, request: Any) -> None:
        """A request ends (`_free_request`)."""
        request_id = request.request_id
        ride = self._rides.pop(request_id, None)
        if ride is None:
            return
        position = None if ride.base is None else self._riders.leave(request_id)
        self._irregular.pop(request_id, None)
        for trip in self._pending.values():
            trip.lose(request_id, ride)
        departure = Departure(ride, request.status.name, request.num_output_tokens, self.clock())
        if self._departures is None:
            self._put(departure)
        else:
            self._left[request_id] = ride
            self._departures.append(departure)
        if position is not None and position != request.num_computed_tokens:
            LOG.debug("farebox: %s was at %d, not at %d", request_id, request.num_computed_tokens, position)
            self._derail_all()

    def recover(self) -> None:
        """After a fault: look at every request again, one by one."""
        self._tell_departures(self.clock())
        self._derail_all()

    def abandon(self) -> None:
        """The engine ends: whoever is on board or waits is put off."""
        now_ns = self.clock()
        for ride in self._rides.values():
            self._put(Departure(ride, "FINISHED_ABORTED", ride.request.num_output_tokens, now_ns))
        self._rides.clear()

    def _ride(self, request: Any) -> Ride:
        key = take_tenant(request)
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = Group(*key, self._block_size)
        ride = self._rides[request.request_id] = Ride(request, group, self.clock() - waited_ns(request))
        return ride

    def _put_off(self, preempted: Iterable[str]) -> None:
        for request_id in preempted:
            self._preempted += 1
            if request_id in self._rides:
                self._derail(request_id)

    def _derail(self, request_id: str) -> Ride:
        """From now on, look at this request by itself."""
        ride = self._rides.get(request_id) or self._ride(self._scheduler.requests[request_id])
        if ride.base is not None:
            ride.high_water = self._riders.leave(request_id)
        self._irregular[request_id] = ride
        return ride

    def _derail_all(self) -> None:
        for request_id in list(self._riders.members):
            self._derail(request_id)

    def _board(self, trip: Trip) -> None:
        """Find out whose rows are computed, and go on with those who decode from now on."""
        scheduled = trip.scheduled
        rows: dict[str, int] = scheduled.num_scheduled_tokens
        riders = self._riders
        for new in scheduled.scheduled_new_reqs:
            ride = self._derail(new.req_id)
            if ride.scheduled_ns is None:
                ride.cached = new.num_computed_tokens
        for request_id in scheduled.scheduled_cached_reqs.resumed_req_ids:
            self._derail(request_id)
        left_rows = scheduled.total_num_scheduled_tokens
        left = len(rows)
        if self._irregular:
            seen = self._look_at(trip, rows)
            left -= seen[0]
            left_rows -= seen[1]
        if left == left_rows == len(riders.members):
            trip.decodes += riders.step()
            trip.expected += left
        else:
            self._board_part(trip, left, left_rows)
        if trip.chunks:
            trip.expected += sum([chunk.output for chunk in trip.chunks])
            if self._is_steady:
                self._settle(trip)

    def _board_part(self, trip: Trip, left: int, left_rows: int) -> None:
        """Some riders sit this step out, or the sums do not fit it."""
        rows: dict[str, int] = trip.scheduled.num_scheduled_tokens
        members = self._riders.members
        for request_id in members.keys() - rows.keys():
            self._derail(request_id)
        if not left == left_rows == len(members):
            self._look_at_rest(trip, rows)
        trip.decodes += self._riders.step()
        trip.expected += len(members)

    def _look_at(self, trip: Trip, rows: dict[str, int]) -> tuple[int, int]:
        """Note what each irregular request does in the step; gives how many of them are in it, and their rows."""
        block_size, is_steady = self._block_size, self._is_steady
        sums: dict[Group, list[int]] = {}
        seen = total = 0
        for request_id, ride in self._irregular.items():
            count = rows.get(request_id)
            if count is None:
                continue
            seen += 1
            total += count
            request = ride.request
            after: int = request.num_computed_tokens
            before = after - count
            if is_steady or before < ride.high_water or before < request.num_prompt_tokens:
                self._note(trip, ride, count)
                continue
            ride.high_water = after
            cell = sums.get(ride.group)
            if cell is None:
                cell = sums[ride.group] = [0, 0, 0, 0]
            cell[0] += 1
            cell[1] += count
            cell[2] += count * before + count * (count + 1) // 2
            cell[3] += -(-after // block_size)
        for group, (seqs, computed, attended, blocks) in sums.items():
            trip.decodes.append((group, seqs, computed, attended, blocks))
            trip.expected += seqs
        return seen, total

    def _note(self, trip: Trip, ride: Ride, rows: int) -> None:
        trip.chunks.append(Chunk(ride, rows, self._block_size))
        if ride.scheduled_ns is None:
            ride.scheduled_ns = trip.started_ns

    def _look_at_rest(self, trip: Trip, rows: dict[str, int]) -> None:
        """The sums do not fit this step: note everybody else by themselves, as vLLM has them."""
        rest = [request_id for request_id in rows if request_id not in self._irregular]
        for request_id in rest:
            self._note(trip, self._derail(request_id), rows[request_id])

    def _settle(self, trip: Trip) -> None:
        for chunk in trip.chunks:
            if chunk.is_caught_up:
                request = chunk.ride.request
                del self._irregular[request.request_id]
                self._riders.join(request.request_id, chunk.ride, request.num_computed_tokens)

    def _stamp(self, trip: Trip, scheduled_ns: int) -> None:
        """Note first steps and first tokens."""
        for chunk in trip.chunks:
            ride = chunk.ride
            if ride.scheduled_ns == scheduled_ns:
                ride.scheduled_ns = trip.started_ns
            if chunk.output and ride.first_token_ns is None:
                ride.first_token_ns = trip.ended_ns

    def _tell_departures(self, finished_ns: int) -> None:
        departures, self._departures = self._departures, None
        if departures:
            for departure in departures:
                self._put(departure._replace(finished_ns=finished_ns))
            self._left.clear()
