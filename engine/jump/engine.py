"""The jump engine: continuous batching in which only changes cost time."""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from ...roofline.step_model import UNIT_BITS
from ..arrival import Arrival
from ..config import EngineConfig
from .cruise import Cruise, Position, least_steps
from .decodes import RIDE, RIDE_BITS, Decodes
from .inflow import BATCH, FAST, NEVER, STANDARD, Inflow
from .log import BOARDS, COMPLETES, ENDS, Ending, Log, Segment
from .queue import Queue


class Partial(NamedTuple):
    """A request whose prompt is computed in part, and how many tokens of it."""

    request: int
    computed: int


class Past(NamedTuple):
    """What a preempted request did before: output tokens, and rows that were computed once."""

    output_tokens: int
    high_water: int


NO_PAST = Past(0, 0)


class JumpEngine:
    """Serves a workload as `Engine` under `replay` does, but keeps a log of changes instead of telling steps.

    Between two changes (somebody gets off, arrives, boards or runs out of KV blocks) any number of steps is one sum.
    Whoever prefills is at most one, since a prompt is cut only where the token budget ends, and has boarded last.
    """

    def __init__(self, config: EngineConfig, first: Arrival, rest: Iterable[Arrival]) -> None:
        self.inflow = Inflow(config, first, iter(rest))
        self._model = config.step_model
        self._seats = config.seats
        self._token_budget = config.max_num_batched_tokens
        self._block_size = config.block_size
        self._blocks = config.usable_blocks
        self._decodes = Decodes(config.step_model, config.block_size)
        self._queue = Queue()
        self._partial: Partial | None = None
        self._pasts: dict[int, Past] = {}
        """Of those who were preempted and have not ended."""
        self._full_blocks = 0
        """KV blocks that those on board hold at their end: while all of them fit, nobody counts blocks."""
        self._hang_ups: list[tuple[int, str, int]] = []
        """A heap of when clients lose patience, and which."""
        self._base_ns = first.arrived_ns
        self._cruise_on = Cruise(config, self.inflow, self._decodes)
        self._clock = 0
        self._now_ns = first.arrived_ns
        self._step = 0
        self._ended_ns = first.arrived_ns
        """When the last step ended."""
        self._log = Log()
        self._can_cruise = True

    def segment(self, most: int) -> Segment | None:
        """Serve on for at most `most` steps, or to the end; None when everything has been told."""
        log = self._log = Log()
        forgotten = self._forget()
        first, clock, ended_ns, waiting, taken = (
            self._step, self._clock, self._ended_ns, self._queue.size, self.inflow.taken
        )  # fmt: skip
        for number, ride in enumerate(self._decodes.renumber(first)):
            log.rides += (number, *ride)
        self._begin_segment()
        self._serve(first + most)
        steps, arrived = self._step - first, range(taken, self.inflow.taken)
        if not steps and not log.endings:
            return None
        return Segment(log, first, steps, self._base_ns, clock, ended_ns, waiting, arrived, self._now_ns, forgotten)

    def _forget(self) -> int:
        """Number requests from the oldest that has not ended, so that who ended takes no room; returns how many did."""
        live = [ride[0] for ride in self._decodes.rides.values()] + self._queue.numbers()
        if self._partial is not None:
            live.append(self._partial.request)
        count = min(live, default=self.inflow.taken)
        if count:
            self.inflow.forget(count)
            self._renumber(count)
        return count

    def _renumber(self, less: int) -> None:
        """Requests have smaller numbers by `less` from now on."""
        self._decodes.renumber_requests(less)
        self._queue.renumber(less)
        if self._partial is not None:
            self._partial = Partial(self._partial.request - less, self._partial.computed)
        self._pasts = {request - less: past for request, past in self._pasts.items()}
        self._hang_ups = [(at, name, request - less) for at, name, request in self._hang_ups if request >= less]
        heapify(self._hang_ups)

    def _serve(self, end: int) -> None:
        while True:
            roomy = self._full_blocks <= self._blocks
            if self._can_cruise and roomy and not (self._queue.size or self._partial or self._hang_ups):
                self._cruise(end)
            self._feed()
            if self._step >= end:
                return
            if self._hang_ups:
                self._drop_hung_up()
            if not self._leap(end) and not self._take_step() and not self._idle():
                return

    def _cruise(self, end: int) -> None:
        """Take steps up to number `end` as long as they are simple."""
        at = Position(self._step, self._clock, self._full_blocks)
        self._step, self._clock, self._full_blocks = self._cruise_on.take_steps(at, end, self._log)
        if self._step > at.step:
            self._now_ns = self._ended_ns = self._base_ns + (self._clock >> UNIT_BITS)

    def _feed(self) -> None:
        """Queue what has arrived by now."""
        inflow, queue = self.inflow, self._queue
        while inflow.next_ns <= self._now_ns:
            request = inflow.take()
            if inflow.blocks[request] > self._blocks:
                self._log.endings.append(Ending(request, self._step, self._now_ns, "rejected", 0))
                continue
            queue.put(request, inflow.lane[request])
            if request in inflow.aborts:
                heappush(self._hang_ups, (inflow.aborts.pop(request), inflow.ids[request], request))

    def _drop_hung_up(self) -> None:
        while self._hang_ups and self._hang_ups[0][0] <= self._now_ns:
            request = heappop(self._hang_ups)[2]
            if self._queue.drop(request, self.inflow.lane[request]):
                self._log.hung_up.append(self._step)
                output_tokens = self._pasts.get(request, NO_PAST).output_tokens
            else:
                ride = next((number for number, ride in self._decodes.rides.items() if ride[0] == request), None)
                if ride is None and (self._partial is None or self._partial.request != request):
                    continue
                output_tokens = self._get_off(ride, comes_back=False).output_tokens
            self._pasts.pop(request, None)
            self._log.endings.append(Ending(request, self._step, self._now_ns, "abort", output_tokens))

    def _leap(self, end: int) -> bool:
        """Take coming steps that are alike at once, up to number `end`, and go on while nothing else happens than
        that somebody gets off. False: the coming step is none of them.
        """
        decodes, waiting, step = self._decodes, self._queue.size, self._step
        if not decodes.n or self._partial is not None:
            return False
        event_ns = self._blocked_until_ns() if waiting else self.inflow.next_ns
        if self._hang_ups:
            event_ns = min(event_ns, self._hang_ups[0][0])
        token_units, clock, begin = decodes.token_units, self._clock, step
        left = ((event_ns - self._base_ns) << UNIT_BITS) - clock
        while left > 0 and step < end and decodes.n:
            n, next_end = decodes.n, decodes.next_end
            steps = (next_end if next_end < end else end) - step
            if self._full_blocks > self._blocks:
                steps = self._steps_that_fit(steps)
                if not steps:
                    break
            first, growth = decodes.base[n] + token_units * (n * step - decodes.origins), token_units * n
            units = first * steps + growth * (steps * (steps - 1) >> 1)
            if units >= left:
                steps, units = least_steps(first, growth, left)
            clock += units
            left -= units
            self._step = step = step + steps
            if step == next_end:
                self._let_off()
                if waiting or not self._can_cruise:
                    break
        self._clock = clock
        self._now_ns = self._ended_ns = self._base_ns + (clock >> UNIT_BITS)
        return step > begin

    def _let_off(self) -> None:
        """Let those get off whose last step is over."""
        decodes, blocks = self._decodes, self.inflow.blocks
        due, end = decodes.due, (self._step + 1) << RIDE_BITS
        self._settle_blocks()
        while due[0] < end:
            number = heappop(due) & RIDE
            if number in decodes.rides:
                request, _, origin, _ = decodes.leave(number)
                self._full_blocks -= blocks[request]
                self._give_back(request, self._step - 1 - origin, decodes=True, comes_back=False)
                self._pasts.pop(request, None)

    def _blocked_until_ns(self) -> int:
        """When something may come that ends a leap although somebody waits; now: the head of the queue boards."""
        head, inflow = self._queue.head(), self.inflow
        lane = inflow.lane[head]
        if inflow.displaces and self._yielding(head):
            return self._now_ns
        if self._on_board >= self._seats:
            return inflow.overtaking_ns(min(lane, STANDARD) if inflow.displaces else FAST)
        return self._now_ns if self._fits(head, 0) else inflow.overtaking_ns(lane)

    @property
    def _on_board(self) -> int:
        return self._decodes.n + (self._partial is not None)

    def _fits(self, request: int, taken: int) -> bool:
        """Whether all its tokens fit beside the coming step's decode rows and `taken` blocks of others."""
        if self._full_blocks + self.inflow.blocks[request] <= self._blocks:
            return True
        return self._lack(self._step + 1) + taken + self._needed(request) <= 0

    def _needed(self, request: int) -> int:
        """KV blocks that all its tokens take when it boards."""
        return -(-self._tokens(request) // self._block_size)

    def _tokens(self, request: int) -> int:
        """Tokens of a request that does not decode, prompt and output."""
        past = self._pasts.get(request)
        return self.inflow.prompt[request] + (past.output_tokens if past else 0)

    def _steps_that_fit(self, most: int) -> int:
        """The coming decode steps, at most `most`, for which there are KV blocks."""
        step = self._step
        if self._lack(step + most) <= 0:
            return most
        few = 0
        while most - few > 1:
            middle = (few + most) // 2
            few, most = (middle, most) if self._lack(step + middle) <= 0 else (few, middle)
        return few

    def _lack(self, step: int) -> int:
        """KV blocks that are missing before a step allocates its own, if nobody joins or leaves; ≤ 0: none."""
        return self._decodes.held(step) - self._blocks

    def _take_step(self) -> bool:
        """One step in which somebody prefills, boards or is put off; False: nobody is on board."""
        chunks = self._schedule()
        decodes, step = self._decodes, self._step
        rows = decodes.n
        if not rows and not chunks:
            return False
        attn = decodes.token_units * (rows * step - decodes.origins)
        attention = self._model.attention
        for _, count, before, _, _ in chunks:
            rows += count
            attn += attention(count, before)
        if rows >= len(decodes.base):
            decodes.price(rows)
        self._clock += decodes.base[rows] + attn
        self._now_ns = self._ended_ns = self._base_ns + (self._clock >> UNIT_BITS)
        self._step = step + 1
        for request, count, before, tokens, flags in chunks:
            self._compute(request, count, before, tokens, flags)
        if decodes.n and decodes.next_end == self._step:
            self._let_off()
        return True

    def _schedule(self) -> list[tuple[int, int, int, int, int]]:
        """Chunks of the coming step: request, rows, tokens computed before, tokens it has, flags."""
        queue, inflow, pasts = self._queue, self.inflow, self._pasts
        admit = self._full_blocks <= self._blocks or not self._make_room()
        fast_only = admit and inflow.displaces and queue.size > 0 and self._make_way()
        seats = self._seats - self._decodes.n
        budget = self._token_budget - self._decodes.n
        chunks: list[tuple[int, int, int, int, int]] = []
        taken = 0
        self._allot_decodes()
        if self._partial is not None:
            request, computed = self._partial
            tokens = self._tokens(request)
            rows = min(tokens - computed, budget)
            self._allot(request, computed, rows)
            chunks.append((request, rows, computed, tokens, 0))
            budget -= rows
            taken = -(-(computed + rows) // self._block_size)
        while admit and budget and queue.size and len(chunks) < seats:
            request = queue.head()
            if (fast_only and inflow.lane[request] != FAST) or not self._fits(request, taken):
                break
            queue.pop(inflow.lane[request])
            self._full_blocks += inflow.blocks[request]
            tokens = self._tokens(request) if pasts else inflow.prompt[request]
            computed = self._take_cached(request, tokens)
            rows = min(tokens - computed, budget)
            self._allot(request, computed, rows)
            chunks.append((request, rows, computed, tokens, BOARDS))
            budget -= rows
            taken -= -(computed + rows) // self._block_size
        self._note_blocks(chunks)
        return chunks

    # What follows is where a prefix cache comes in: blocks that are only counted need nothing of it.

    def _begin_segment(self) -> None:
        """Log what goes on since the segment before."""

    def _settle_blocks(self) -> None:
        """The decode rows so far get their KV blocks."""

    def _give_back(self, request: int, computed: int, *, decodes: bool, comes_back: bool) -> None:
        """The KV blocks of `computed` tokens of a request are free."""

    def _allot_decodes(self) -> None:
        """The coming step's decode rows get their KV blocks."""

    def _take_cached(self, request: int, tokens: int) -> int:
        """How many tokens of a request that boards need not be computed; it holds their KV blocks from now on."""
        return 0

    def _allot(self, request: int, computed: int, rows: int) -> None:
        """A chunk gets its KV blocks."""

    def _note_blocks(self, chunks: list[tuple[int, int, int, int, int]]) -> None:
        """Log how KV blocks are shared in the coming step, with these chunks in it."""

    def _compute(self, request: int, rows: int, before: int, tokens: int, flags: int) -> None:
        """The rows of a chunk are computed; the last of them samples the next token, or ends a request without any."""
        past = self._pasts.get(request, NO_PAST) if self._pasts else NO_PAST
        computed, step = before + rows, self._step
        if computed < tokens:
            self._partial = Partial(request, computed)
        else:
            self._partial = None
            target, output_tokens = self.inflow.target[request], past.output_tokens + 1
            if output_tokens < target:
                flags |= COMPLETES
                ride = (request, step, step - computed - 1, step + target - output_tokens)
                self._log.rides += (self._decodes.next, *ride)
                self._decodes.join(ride)
            else:
                flags |= COMPLETES | ENDS
                self._full_blocks -= self.inflow.blocks[request]
                self._pasts.pop(request, None)
        self._log.chunks += (step - 1, request, rows, before, past.high_water, flags)

    def _make_room(self) -> int:
        """Preempt riders until the others' next rows fit into the KV cache; returns how many."""
        preempted = 0
        while self._lack(self._step + 1) + self._partial_blocks() > 0:
            batch = self._batch_riders() if self.inflow.has_batch else []
            newest = None if self._partial is not None else next(reversed(self._decodes.rides))
            self._put_off(batch[-1] if batch else newest)
            preempted += 1
        return preempted

    def _make_way(self) -> bool:
        """Preempt batch riders until the fast request at the head of the queue can board; whether there were any."""
        head = self._queue.head()
        yielding = self._yielding(head)
        riders = len(yielding)
        while yielding and not self._has_room(head):
            self._put_off(yielding.pop())
        return len(yielding) < riders

    def _yielding(self, head: int) -> list[int | None]:
        """Batch riders without whom a fast `head` of the queue could board, the first to go last; nobody if it can't.

        By the numbers of their rides; None is whoever prefills.
        """
        if self.inflow.lane[head] != FAST or not (batch := self._batch_riders()):
            return []
        rides, end = self._decodes.rides, self._partial_end()
        rows, blocks = self._decodes.n - len(batch), 0
        if None in batch:
            rows += 1
        elif self._partial is not None:
            rows += self._tokens(self._partial.request) - self._partial.computed
        for number in batch:
            tokens = end if number is None else self._step - rides[number][2]
            blocks -= -tokens // self._block_size
        return batch if rows < self._token_budget and self._lack_beside_all(head) <= blocks else []

    def _batch_riders(self) -> list[int | None]:
        """Those of the tier `batch` by the numbers of their rides, in the order of boarding; None: whoever prefills."""
        lane = self.inflow.lane
        riders: list[int | None] = [n for n, ride in self._decodes.rides.items() if lane[ride[0]] == BATCH]
        if self._partial is not None and lane[self._partial.request] == BATCH:
            riders.append(None)
        return riders

    def _has_room(self, request: int) -> bool:
        """Whether there is a seat, a row and KV blocks for it beside the coming rows of all who ride."""
        computed = self._partial.computed if self._partial is not None else 0
        rows = self._decodes.n + self._partial_end() - computed
        return self._on_board < self._seats and rows < self._token_budget and self._lack_beside_all(request) <= 0

    def _lack_beside_all(self, request: int) -> int:
        """KV blocks that are missing for all its tokens beside the coming rows of all who ride; ≤ 0: none."""
        return self._lack(self._step + 1) + self._partial_blocks() + self._needed(request)

    def _put_off(self, number: int | None) -> None:
        """Preempt a rider, by the number of its ride, or whoever prefills."""
        if number is None and self._partial is not None:
            request = self._partial.request
        else:
            request = self._decodes.rides[number or 0][0]
        self._pasts[request] = self._get_off(number, comes_back=True)
        self._queue.put_back(request, self.inflow.lane[request])
        self._log.preempted += (self._step, request)

    def _partial_end(self) -> int:
        """Tokens of whoever prefills that are computed after its next chunk."""
        if self._partial is None:
            return 0
        request, computed = self._partial
        return min(self._tokens(request), computed + self._token_budget - self._decodes.n)

    def _partial_blocks(self) -> int:
        """KV blocks that whoever prefills has after its next chunk."""
        return -(-self._partial_end() // self._block_size)

    def _get_off(self, number: int | None, *, comes_back: bool) -> Past:
        """Take a rider off the batch, by the number of its ride, or whoever prefills; returns what it has done."""
        self._settle_blocks()
        if number is not None:
            request, _, origin, _ = self._decodes.leave(number)
            self._log.cut[number] = self._step
            computed = self._step - 1 - origin
            output_tokens = computed + 1 - self.inflow.prompt[request]
        elif self._partial is not None:
            request, computed = self._partial
            output_tokens = self._pasts.get(request, NO_PAST).output_tokens
            self._partial = None
        else:
            raise IndexError("nobody is on board")
        self._full_blocks -= self.inflow.blocks[request]
        self._give_back(request, computed, decodes=number is not None, comes_back=comes_back)
        return Past(output_tokens, max(computed, self._pasts.get(request, NO_PAST).high_water))

    def _idle(self) -> bool:
        """Let time pass until the next arrival; False: there is none."""
        next_ns = self.inflow.next_ns
        if next_ns == NEVER:
            return False
        clock = (next_ns - self._base_ns) << UNIT_BITS
        self._log.idles += (self._step, clock - self._clock)
        self._clock, self._now_ns = clock, next_ns
        return True
