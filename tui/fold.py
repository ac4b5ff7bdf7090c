"""One run, folded into seconds: steps, shares and requests in, sums per second out."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from ..events import Interval, Request, Run, Share, Step
from .alone import alone_units, model_of
from .boarding import Boarding
from .numbers import SECOND_NS

KEEP_S = 300
REQUESTS_KEPT = 100_000


@dataclass(slots=True)
class Usage:
    """What one tenant and tier had in one second."""

    gpu_ns: int = 0
    prefill_gpu_ns: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0


@dataclass(slots=True)
class Hold:
    """For how long somebody's cap kept others off the batch, with how many on board and at most how many waiting."""

    ns: int = 0
    seat_ns: int = 0
    waiting: int = 0


@dataclass(slots=True)
class Second:
    """Sums of one second. Times are cut at its borders; tokens, FLOPs and counts are of the steps that ended in it."""

    busy_ns: int = 0
    idle_ns: int = 0
    prefill_ns: int = 0
    decode_ns: int = 0
    seat_ns: int = 0
    waiting_ns: int = 0
    steps: int = 0
    step_ns: int = 0
    preemptions: int = 0
    recomputed: int = 0
    flops: int = 0
    flops_ns: int = 0
    bytes: int = 0
    bytes_ns: int = 0
    alone_units: int = 0
    alone_busy_ns: int = 0
    underfill: int = 0
    overhead: int = 0
    finished: int = 0
    rejected: int = 0
    batch_ns: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    tenants: dict[tuple[str, str], Usage] = field(default_factory=lambda: defaultdict(Usage))
    ttft_ns: list[int] = field(default_factory=list)
    itl_ns: list[int] = field(default_factory=list)
    held: dict[str, Hold] = field(default_factory=lambda: defaultdict(Hold))


def cut(start_ns: int, end_ns: int) -> Iterator[tuple[int, int, int]]:
    """[start, end) at whole seconds: (second, elapsed before it, elapsed after it) in ns; nothing for an empty span."""
    at = start_ns
    while at < end_ns:
        second = at // SECOND_NS
        stop = min(end_ns, (second + 1) * SECOND_NS)
        yield second, at - start_ns, stop - start_ns
        at = stop


class Fold:
    """The last five minutes of one run, second by second; what is older is forgotten.

    `first_ns` is the earliest instant it knows everything about.
    """

    def __init__(self, run: Run, since_ns: int) -> None:
        self.run = run
        self.model = model_of(run.step_model)
        self.seconds: dict[int, Second] = {}
        self.first_ns = self._since_ns = max(run.started_ns, since_ns)
        self.last_step: Step | None = None
        self.requests: deque[Request] = deque(maxlen=REQUESTS_KEPT)
        """Those that ended in the last minutes, as they were told."""
        self.boarding = Boarding()
        self._last_end_ns = self.first_ns
        self._worked_ns = self.first_ns
        self.aboard: dict[tuple[str, str], int] = {}
        self._paid: dict[int, int] = {}
        self._steps: dict[int, Step] = {}
        self._early: list[Share] = []
        self.intervals: deque[Interval] = deque()
        """What pages said of a scraped engine, the newest last."""
        self._cells: dict[int, list[Share]] = {}
        self._boarding_steps: list[Step] = []

    @property
    def up_ns(self) -> int:
        """When the model was loaded, as far as the run has told."""
        return self.run.started_ns + self.run.load_ns

    @property
    def still_since_ns(self) -> int:
        """Since when no step has run: the end of the newest one, or the end of loading."""
        return max(self._worked_ns, self.up_ns)

    @property
    def is_scraped(self) -> bool:
        """Whether pages are all that is known; an engine may be scraped beside telling its steps."""
        return bool(self.intervals) and (self.last_step is None or self.last_step.basis != "step")

    @property
    def told_until_ns(self) -> int:
        """Up to where steps, idle ones of scraped engines included, say what there was; or the end of loading."""
        return max(self._last_end_ns, self.up_ns)

    def step(self, step: Step) -> None:
        """Fold one step and the gap before it. Steps come in the order of `step_seq`."""
        self._gap(step)
        start, end, running = step.started_ns, step.ended_ns, step.running
        for number, before, after in cut(start, end):
            part = after - before
            second = self._at(number)
            second.busy_ns += part
            second.seat_ns += running * part
            second.waiting_ns += step.waiting * part
            second.batch_ns[running] += part
            if step.prefill_ns is not None and step.decode_ns is not None:
                prefill = _part(step.prefill_ns, before, after, step.duration_ns)
                second.prefill_ns += prefill
                second.decode_ns += part - prefill
        self._ended(step)
        self.last_step = step
        self._last_end_ns = max(self._last_end_ns, end)
        if step.duration_ns:
            self._worked_ns = self._last_end_ns
        self.aboard = {}
        self._steps[step.step_seq] = step
        self._boarding_steps.append(step)

    def shares(self, shares: Iterable[Share]) -> None:
        """Fold the shares of the steps folded so far; those of later steps wait for them."""
        known = self.last_step.step_seq if self.last_step else -1
        waiting, self._early = self._early, []
        for cell in (*waiting, *shares):
            if cell.step_seq > known:
                self._early.append(cell)
            elif step := self._steps.get(cell.step_seq):
                self._cells.setdefault(cell.step_seq, []).append(cell)
                self._share(cell, step)
        self._steps = {known: self.last_step} if self.last_step else {}
        self._paid = {known: self._paid.get(known, 0)}

    def interval(self, interval: Interval) -> None:
        """Keep what a page said about the time of a step; it is known from its start, also where nobody saw a step."""
        self.intervals.append(interval)
        self.first_ns = min(self.first_ns, max(self._since_ns, interval.started_ns))

    def request(self, request: Request) -> None:
        """Fold one finished request."""
        self.requests.append(request)
        self.boarding.finished(request)
        second = self._at(max(0, request.finished_ns - 1) // SECOND_NS)
        if request.finish_reason == "rejected":
            second.rejected += 1
            return
        second.finished += 1
        if request.first_token_ns is None:
            return
        second.ttft_ns.append(request.first_token_ns - request.arrived_ns)
        if request.output_tokens is not None and request.output_tokens > 1:
            second.itl_ns.append((request.finished_ns - request.first_token_ns) // (request.output_tokens - 1))

    def board(self) -> None:
        """Seat the riders of the steps folded so far, once their shares and requests are folded too."""
        for step in self._boarding_steps:
            self.boarding.step(step, self._cells.get(step.step_seq, ()))
        self._boarding_steps = []
        self._cells = {}

    def window(self, begin_ns: int, end_ns: int) -> list[Second]:
        """The seconds that [begin, end) touches and that hold something."""
        first, last = begin_ns // SECOND_NS, (end_ns - 1) // SECOND_NS
        return [s for n in range(first, last + 1) if (s := self.seconds.get(n))]

    def forget(self, now_ns: int) -> None:
        """Drop the seconds that are older than five minutes before `now_ns`."""
        oldest = now_ns // SECOND_NS - KEEP_S
        for number in [n for n in self.seconds if n < oldest]:
            del self.seconds[number]
        while self.intervals and self.intervals[0].started_ns // SECOND_NS < oldest:
            self.intervals.popleft()
        while self.requests and self.requests[0].finished_ns < oldest * SECOND_NS:
            self.requests.popleft()

    def _at(self, number: int) -> Second:
        second = self.seconds.get(number)
        if second is None:
            second = self.seconds[number] = Second()
        return second

    def _gap(self, step: Step) -> None:
        """Time before a step: idle when no step is missing, else idle only as far as the step itself says so."""
        last = self.last_step
        gap = step.started_ns - self.told_until_ns
        if last is None and step.step_seq > 0:
            self.first_ns = max(self.first_ns, min(step.started_ns, step.started_ns - step.idle_before_ns))
        if last is None or step.step_seq != last.step_seq + 1:
            gap = min(step.idle_before_ns, gap)
        start = max(step.started_ns - gap, step.started_ns - KEEP_S * SECOND_NS)
        for number, before, after in cut(start, step.started_ns):
            self._at(number).idle_ns += after - before

    def _ended(self, step: Step) -> None:
        second = self._at(_last_second(step))
        if step.basis == "step":
            second.steps += 1
            second.step_ns += step.duration_ns
        second.preemptions += step.preemptions
        second.recomputed += step.recomputed_tokens
        if step.held_by is not None:
            hold = second.held[step.held_by]
            hold.ns += step.duration_ns
            hold.seat_ns += step.running * step.duration_ns
            hold.waiting = max(hold.waiting, step.waiting)
        if step.flops is not None:
            second.flops += step.flops
            second.flops_ns += step.duration_ns
        if step.bytes is not None:
            second.bytes += step.bytes
            second.bytes_ns += step.duration_ns
        if self.model is not None and step.basis == "step":
            second.alone_busy_ns += step.duration_ns

    def _share(self, cell: Share, step: Step) -> None:
        self._pay(cell, step)
        key = (cell.tenant_id, cell.tier)
        second = self._at(_last_second(step))
        if self.model is not None and step.basis == "step":
            second.alone_units += alone_units(self.model, cell)
        if cell.account == "tenant":
            usage = second.tenants[key]
            usage.prompt_tokens += cell.cached_tokens + (cell.rows if cell.phase == "prefill" else 0)
            usage.cached_tokens += cell.cached_tokens
            usage.output_tokens += cell.output_tokens
        if self.last_step is step:
            self.aboard[key] = self.aboard.get(key, 0) + cell.seqs

    def _pay(self, cell: Share, step: Step) -> None:
        """Book what a cell pays. Cells are cut cumulated, so that in every second they sum to the busy time."""
        paid = self._paid.get(cell.step_seq, 0)
        total = self._paid[cell.step_seq] = paid + (cell.gpu_ns or 0)
        for number, before, after in cut(step.started_ns, step.ended_ns):
            gpu_ns = _part(total, before, after, step.duration_ns) - _part(paid, before, after, step.duration_ns)
            second = self._at(number)
            if cell.account == "tenant":
                usage = second.tenants[cell.tenant_id, cell.tier]
                usage.gpu_ns += gpu_ns
                usage.prefill_gpu_ns += gpu_ns if cell.phase == "prefill" else 0
            elif cell.account == "underfill":
                second.underfill += gpu_ns
            else:
                second.overhead += gpu_ns


def alone_ns(seconds: Iterable[Second]) -> int:
    """Time alone over some seconds, in ns."""
    from ..roofline.step_model import UNITS_PER_NS

    return sum(s.alone_units for s in seconds) // UNITS_PER_NS


def _last_second(step: Step) -> int:
    """The second in which a step's last nanosecond lies."""
    return max(step.started_ns, step.ended_ns - 1) // SECOND_NS


def _part(amount: int, before: int, after: int, duration: int) -> int:
    """The part of `amount` that falls between two elapsed times of a step; over a step the parts sum exactly."""
    if after - before == duration:
        return amount
    return amount * after // duration - amount * before // duration
