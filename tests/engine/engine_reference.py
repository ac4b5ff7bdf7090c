"""A slow engine that keeps every sequence, every row and every KV block by itself: the rules once more."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

from farebox.engine.arrival import Arrival
from farebox.engine.config import EngineConfig
from farebox.events import Request, Share, Step
from farebox.roofline.step_model import UNITS_PER_NS


@dataclass(eq=False)
class _Block:
    key: tuple | None = None
    owners: dict[tuple, int] = field(default_factory=dict)

    def parts(self, label: tuple) -> int:
        """What one owner has of it, in 2⁻²⁰: 1/sharers, rounded down, the rest to whoever came first."""
        sharers = sum(self.owners.values())
        part = 2**20 // sharers
        return part * self.owners[label] + (2**20 - part * sharers if label == next(iter(self.owners)) else 0)


class _Cache:
    """Every KV block by itself: the free ones in a list, the next to be taken first, and the hashed ones by hash."""

    def __init__(self, config: EngineConfig) -> None:
        self.on = config.enable_prefix_caching
        self.size = config.block_size
        self.per_id = config.prefix_block_tokens // config.block_size
        self.free = [_Block() for _ in range(config.kv_blocks - 1)]
        self.all = list(self.free)
        self.hashed: dict[tuple, _Block] = {}

    def reach(self, seq: _Seq) -> int:
        ids = seq.arrival.prefix_ids or ()
        return min(len(ids) * self.per_id, seq.arrival.prompt_tokens // self.size) if self.on else 0

    def key(self, seq: _Seq, number: int) -> tuple:
        if number < self.reach(seq):
            return seq.arrival.prefix_ids[number // self.per_id], number % self.per_id
        return "own", seq.arrival.request_id, number

    def hits(self, seq: _Seq) -> list[_Block]:
        found = []
        while len(found) < (seq.tokens - 1) // self.size and self.key(seq, len(found)) in self.hashed:
            found.append(self.hashed[self.key(seq, len(found))])
        return found

    def take_hits(self, seq: _Seq) -> int:
        """Returns how many of its tokens are there and were never computed by itself."""
        seq.label = ("seq", seq.arrival.request_id)
        seq.blocks = self.hits(seq)
        for block in seq.blocks:
            if not block.owners:
                self.free.remove(block)
            block.owners[seq.label] = block.owners.get(seq.label, 0) + 1
        for block in self.all:  # what it does not find now it will not find later
            if block.key is not None and block.key[:2] == ("own", seq.arrival.request_id):
                del self.hashed[block.key]
                block.key = None
        seq.computed = len(seq.blocks) * self.size
        fresh = max(0, seq.computed - seq.high_water)
        seq.cached += fresh
        return fresh

    def grow(self, seq: _Seq, tokens: int, drafts: int = 0) -> None:
        while len(seq.blocks) * self.size < tokens:
            block = self.free.pop(0)
            if block.key is not None:
                del self.hashed[block.key]
            block.key, block.owners = None, {seq.label: 1}
            seq.blocks.append(block)
        for number in range(min((tokens - drafts) // self.size, self.reach(seq))):
            key, block = self.key(seq, number), seq.blocks[number]
            if block.key is None and not seq.closed:
                if key in self.hashed:
                    seq.closed = True
                else:
                    block.key, self.hashed[key] = key, block

    def release(self, seq: _Seq, keep: bool = False) -> None:
        for number in reversed(range(len(seq.blocks))):
            block = seq.blocks[number]
            self.disown(block, seq.label)
            if not block.owners:
                self.free.append(block)
            if keep and self.on and self.reach(seq) <= number < seq.computed // self.size:
                block.key = self.key(seq, number)
                self.hashed[block.key] = block
        seq.blocks, seq.closed = [], False

    def relabel(self, seq: _Seq, label: tuple) -> None:
        for block in seq.blocks:
            self.disown(block, seq.label)
            block.owners[label] = block.owners.get(label, 0) + 1
        seq.label = label

    def parts(self, label: tuple) -> int:
        return sum(block.parts(label) for block in self.all if label in block.owners)

    @staticmethod
    def disown(block: _Block, label: tuple) -> None:
        block.owners[label] -= 1
        if not block.owners[label]:
            del block.owners[label]


@dataclass
class _Seq:
    arrival: Arrival
    number: int
    output: int = 0
    computed: int = 0
    high_water: int = 0
    blocks: list[_Block] = field(default_factory=list)
    closed: bool = False
    label: tuple[str, ...] = ()
    cached: int = 0
    preemptions: int = 0
    drafts: int = 0
    scheduled_ns: int | None = None
    first_token_ns: int | None = None
    gpu: Fraction = field(default_factory=Fraction)

    @property
    def tokens(self) -> int:
        return self.arrival.prompt_tokens + self.output

    @property
    def target(self) -> int:
        a = self.arrival
        return a.output_tokens if a.max_tokens is None else min(a.output_tokens, a.max_tokens)


class ReferenceEngine:
    """The rules once more, sequence by sequence and row by row; between steps it remembers nothing but those."""

    def __init__(self, config: EngineConfig) -> None:
        self.c = config
        self.cache = _Cache(config)
        self.waiting: list[_Seq] = []
        self.running: list[_Seq] = []
        self.steps: list[Step] = []
        self.cells: list[list[Share]] = []
        self.requests: list[Request] = []

    def blocks(self, tokens: int) -> int:
        return (tokens + self.c.block_size - 1) // self.c.block_size

    @property
    def free(self) -> int:
        return len(self.cache.free)

    @property
    def lookahead(self) -> int:
        return self.c.speculation.num_speculative_tokens if self.c.speculation else 0

    @property
    def seats(self) -> int:
        return 1 if self.c.mode == "none" else min(self.c.max_num_seqs, self.c.max_num_batched_tokens)

    def serve(self, arrivals: list[Arrival]) -> ReferenceEngine:
        base = arrivals[0].arrived_ns
        clock, end_of_last, coming = 0, base, list(arrivals)
        while True:
            now = base + clock // UNITS_PER_NS
            while coming and coming[0].arrived_ns <= now:
                self.arrive(_Seq(coming.pop(0), -len(coming)), now)
            gone = [
                s for s in self.waiting + self.running if s.arrival.abort_ns is not None and s.arrival.abort_ns <= now
            ]
            for seq in sorted(gone, key=lambda s: (s.arrival.abort_ns, s.arrival.request_id)):
                (self.running if seq in self.running else self.waiting).remove(seq)
                self.cache.release(seq)
                self.finish(seq, now, "abort")
            rows, preemptions, held_by = getattr(self, f"schedule_{self.c.mode}")(now)
            if not self.running:
                wakes = [a.arrived_ns for a in coming[:1]]
                if self.c.mode == "static" and self.waiting:
                    wakes.append(self.deadline())
                if not wakes:
                    return self
                clock = max(clock, (min(wakes) - base) * UNITS_PER_NS)
                continue
            units = self.step_units(rows)
            clock += units
            ended = base + clock // UNITS_PER_NS
            self.tell(rows, preemptions, held_by, now, ended, end_of_last)
            end_of_last = ended
            self.advance(rows, now, ended)

    def arrive(self, seq: _Seq, now: int) -> None:
        if self.blocks(seq.arrival.prompt_tokens + seq.target + self.lookahead) > self.c.kv_blocks - 1:
            self.finish(seq, now, "rejected")
        else:
            self.waiting.append(seq)

    def next_waiting(self) -> _Seq:
        return min(self.waiting, key=self.rank)

    def rank(self, seq: _Seq) -> int:
        tier = ["fast", "standard", "batch"].index(seq.arrival.tier) - 1
        priority = seq.arrival.priority if self.c.scheduling_policy == "priority" else None
        return tier if priority is None else priority

    def victim(self) -> _Seq:
        if self.c.scheduling_policy == "fcfs":
            return ([s for s in self.running if s.arrival.tier == "batch"] or self.running)[-1]
        return max(self.running, key=lambda s: (self.rank(s), s.number))

    def schedule_continuous(self, now: int):
        budget, rows, preemptions = self.c.max_num_batched_tokens, [], 0
        at_once = self.c.scheduling_policy == "priority" or self.c.speculation is not None
        at_once = at_once or any(s.arrival.tier == "batch" for s in self.running)
        while at_once and self.shortage() > 0:  # plain fcfs does it one by one below, as vLLM does: it is the same
            self.put_off(self.victim())
            preemptions += 1
        fast_only = not preemptions and self.make_way()
        preemptions += fast_only
        index = 0
        while index < len(self.running) and budget:
            seq = self.running[index]
            n = min(seq.tokens - seq.computed, budget)
            drafts = self.drafts(seq, n, budget, self.running[index + 1 :])
            while self.blocks(seq.computed + n + drafts) - len(seq.blocks) > self.free:
                victim = self.victim()
                self.put_off(victim)
                preemptions += 1
                if victim is seq:
                    break
            else:
                drafts = self.drafts(seq, n, budget, self.running[index + 1 :])
                budget -= self.compute(seq, budget, drafts, rows)
                index += 1
                continue
            break
        held_by = None
        while (fast_only or not preemptions) and self.waiting and budget and len(self.running) < self.seats:
            seq = self.next_waiting()
            if self.needs(seq) > self.free:
                break
            fast = [s for s in self.running if s.arrival.tier == "fast"]
            if self.c.fast_cap is not None and fast and len(self.running) >= self.c.fast_cap:
                held_by = fast[0].arrival.tenant_id
                break
            if fast_only and seq.arrival.tier != "fast":
                break
            self.waiting.remove(seq)
            self.running.append(seq)
            budget -= self.compute(seq, budget, 0, rows)
        return rows, preemptions, held_by

    def drafts(self, seq: _Seq, n: int, budget: int, behind: list[_Seq]) -> int:
        """Drafted tokens that it verifies: as many as leave a row to everybody behind it."""
        return min(seq.drafts, max(0, budget - n - len(behind))) if seq.computed + n == seq.tokens else 0

    def compute(self, seq: _Seq, budget: int, drafts: int, rows: list) -> int:
        fresh = 0 if seq.computed else self.cache.take_hits(seq)
        n = min(seq.tokens - seq.computed, budget)
        kept = 0
        if drafts:
            key = self.c.speculation.key(seq.arrival.request_id)
            right = self.c.speculation.accepted(key, seq.output, drafts)
            kept = min(right, seq.target - seq.output - 1)
        self.cache.grow(seq, seq.computed + n + drafts, drafts)
        rows.append((seq, n + drafts, fresh, drafts, kept))
        return n + drafts

    def shortage(self) -> int:
        """Blocks that the next rows of all who ride need beyond those free."""
        return sum(more for _, more in self.wishes()) - self.free

    def wishes(self) -> list[tuple[int, int]]:
        """Rows and further blocks of all who ride in the coming step."""
        budget, wishes = self.c.max_num_batched_tokens, []
        for number, seq in enumerate(self.running):
            n = min(seq.tokens - seq.computed, budget)
            n += self.drafts(seq, n, budget, self.running[number + 1 :])
            wishes.append((n, max(0, self.blocks(seq.computed + n) - len(seq.blocks))))
            budget -= n
        return wishes

    def make_way(self) -> int:
        """Put batch riders off for a fast request that is next, if that is of any use; returns how many."""
        if not self.waiting or (head := self.next_waiting()).arrival.tier != "fast":
            return 0
        fast_rides = any(s.arrival.tier == "fast" for s in self.running)
        if self.c.fast_cap is not None and fast_rides and len(self.running) >= self.c.fast_cap:
            return 0
        going = [s for s in self.running if s.arrival.tier == "batch" and self.rank(s) > self.rank(head)]
        if self.c.scheduling_policy == "priority":
            going.sort(key=lambda s: (self.rank(s), s.number))
        staying = [s for s in self.running if s not in going]
        rows = sum(s.tokens - s.computed + s.drafts for s in staying)
        theirs = sum(
            len(s.blocks) + more for s, (_, more) in zip(self.running, self.wishes(), strict=True) if s in going
        )
        if rows >= self.c.max_num_batched_tokens or self.needs(head) > theirs - self.shortage():
            return 0
        count = len(going)
        while going:
            rows = sum(n for n, _ in self.wishes())
            seat_and_row = len(self.running) < self.seats and rows < self.c.max_num_batched_tokens
            if seat_and_row and self.needs(head) <= -self.shortage():
                break
            self.put_off(going.pop())
        return count - len(going)

    def needs(self, seq: _Seq) -> int:
        """Free blocks that it takes to board with all its tokens."""
        return self.blocks(seq.tokens) - sum(bool(b.owners) for b in self.cache.hits(seq))

    def put_off(self, seq: _Seq) -> None:
        self.running.remove(seq)
        self.cache.release(seq, keep=True)
        seq.high_water = max(seq.high_water, seq.computed)
        seq.computed = seq.drafts = 0
        seq.preemptions += 1
        self.waiting.insert(0, seq)

    def deadline(self) -> int:
        return min(s.arrival.arrived_ns for s in self.waiting) + self.c.batch_wait_ms * 1_000_000

    def schedule_static(self, now: int):
        if not self.running and self.waiting:
            batch, rest, need = [], list(self.waiting), 0
            rest.sort(key=self.rank)
            while rest and len(batch) < self.seats:
                need += self.blocks(rest[0].arrival.prompt_tokens + rest[0].target + self.lookahead)
                if need > self.c.kv_blocks - 1:
                    break
                batch.append(rest.pop(0))
            if rest or len(batch) == self.seats or now >= self.deadline():
                self.running = batch
                self.waiting = [s for s in self.waiting if s not in batch]
        return self.everybodys_rows(), 0, None

    def schedule_none(self, now: int):
        if not self.running and self.waiting:
            self.running = [self.next_waiting()]
            self.waiting.remove(self.running[0])
        return self.everybodys_rows(), 0, None

    def everybodys_rows(self):
        budget, rows = self.c.max_num_batched_tokens, []
        for number, seq in enumerate(self.running):
            if budget:
                n = min(seq.tokens - seq.computed, budget)
                drafts = self.drafts(seq, n, budget, self.running[number + 1 :]) if seq.computed else 0
                budget -= self.compute(seq, budget, drafts, rows)
        return rows

    def step_units(self, rows) -> int:
        attn = sum(self.c.step_model.attention(row[1], row[0].computed) + self.draft_units(row, rows) for row in rows)
        return self.c.step_model.step(sum(n for _, n, *_ in rows), attn)

    def draft_units(self, row, rows) -> int:
        """The draft model's first pass over all rows, and one row per further pass of all who sample, by rows."""
        if not self.c.speculation or not self.c.speculation.draft:
            return 0
        draft, passes, index = self.c.speculation.draft, self.lookahead - 1, rows.index(row)
        sampling = [int(seq.computed + n - drafts == seq.tokens) for seq, n, _, drafts, _ in rows]

        def part(units, weights):
            upto = [units * sum(weights[: index + more]) // sum(weights) if sum(weights) else 0 for more in (0, 1)]
            return upto[1] - upto[0]

        seq, n, *_ = row
        units = part(draft.step(sum(r[1] for r in rows), 0), [r[1] for r in rows]) + draft.attention(n, seq.computed)
        units += part(passes * draft.step(sum(sampling), 0), sampling)
        return units + sampling[index] * sum(draft.attention(1, seq.computed + n + more) for more in range(passes))

    def kind(self, seq: _Seq, position: int) -> tuple[str, str]:
        if position < seq.high_water:
            return "overhead", "prefill"
        return "tenant", "prefill" if position < seq.arrival.prompt_tokens else "decode"

    def tell(self, rows, preemptions, held_by, started, ended, end_of_last) -> None:
        cells: dict[tuple, dict[str, int]] = {}
        phases = {"prefill": [0, 0], "decode": [0, 0]}
        labels = set()
        for row in rows:
            seq, n, fresh, drafts, kept = row
            kinds = [self.kind(seq, seq.computed + i) for i in range(n)]
            attn = self.c.step_model.attention(n, seq.computed) + self.draft_units(row, rows)
            redone = kinds.count(("overhead", "prefill"))
            redo_attn = attn * redone // n
            for phase, (seqs, count) in phases.items():
                mine = sum(k[1] == phase for k in kinds)
                phases[phase] = [seqs + (mine > 0), count + mine]
            for kind in dict.fromkeys(kinds):
                key = (kind[0], seq.arrival.tenant_id, seq.arrival.tier, kind[1])
                cell = cells.setdefault(key, dict.fromkeys(("seqs", "rows", "out", "cached", "attn", "parts"), 0))
                over = kind[0] == "overhead"
                cell["rows"] += kinds.count(kind)
                cell["attn"] += redo_attn if over else attn - redo_attn
                if over == (redone * 2 > n):
                    cell["seqs"] += 1
                    cell["parts"] += 0 if seq.label in labels else self.cache.parts(seq.label)
                    labels.add(seq.label)
                if not over:
                    cell["cached"] += fresh
                if kind == kinds[-1] and seq.computed + n - drafts == seq.tokens and seq.target:
                    cell["out"] += 1 + kept
        pair_count = sum(seq.computed + i + 1 for seq, n, *_ in rows for i in range(n))
        c, number, model = self.c, len(self.steps), self.c.step_model
        shares, parts, told = [], 0, 0
        for key, cell in sorted(cells.items()):
            parts += cell["parts"]
            block_ns = parts * (ended - started) // 2**20 - told
            told += block_ns
            shares.append(
                Share(c.engine_id, c.run_id, number, started, *key, cell["seqs"], cell["rows"], cell["out"],
                      cell["cached"], cell["attn"], block_ns, None)
            )  # fmt: skip
        self.cells.append(shares)
        self.steps.append(
            Step(
                c.engine_id, c.run_id, number, started, ended - started, started - end_of_last, c.gpus, None, None,
                len(self.running), len(self.waiting), phases["prefill"][0], phases["decode"][0], phases["prefill"][1],
                phases["decode"][1], sum(cell["out"] for cell in cells.values()),
                sum(fresh for _, _, fresh, *_ in rows),
                sum(cell["rows"] for key, cell in cells.items() if key[0] == "overhead"),
                sum(drafts - kept for *_, drafts, kept in rows),
                c.kv_blocks - 1 - self.free, c.kv_blocks - 1, preemptions, held_by,
                model.flops(sum(n for _, n, *_ in rows), pair_count),
                model.bytes_read(sum(s.computed + n for s, n, *_ in rows), sum(n for _, n, *_ in rows)), "step",
            )
        )  # fmt: skip

    def advance(self, rows, started: int, ended: int) -> None:
        model, total = self.c.step_model, sum(n for _, n, *_ in rows)
        for row in rows:
            seq, n, *_ = row
            shared = Fraction(model.overhead, len(rows)) + Fraction(model.linear(total) * n, total)
            seq.gpu += shared + model.attention(n, seq.computed) + self.draft_units(row, rows)
        for seq, n, _, drafts, kept in rows:
            seq.computed += n - drafts
            seq.scheduled_ns = started if seq.scheduled_ns is None else seq.scheduled_ns
            sampled = seq.computed == seq.tokens and seq.target > 0
            seq.computed += kept
            if sampled:
                seq.output += 1 + kept
                seq.drafts = self.lookahead
                seq.first_token_ns = ended if seq.first_token_ns is None else seq.first_token_ns
            if sampled and seq.output < seq.target and seq.label[0] == "seq" and not self.c.speculation:
                self.cache.relabel(seq, ("group", seq.arrival.tenant_id, seq.arrival.tier))
        for seq, *_ in rows:
            if seq.computed >= seq.arrival.prompt_tokens and seq.output == seq.target:
                self.running.remove(seq)
                self.cache.release(seq)
                limit = seq.arrival.max_tokens
                hit = limit is not None and seq.arrival.output_tokens >= limit
                self.finish(seq, ended, "length" if hit else "stop")

    def finish(self, seq: _Seq, at: int, reason: str) -> None:
        a, c = seq.arrival, self.c
        gpu_ns = int(seq.gpu / UNITS_PER_NS) * c.gpus
        self.requests.append(
            Request(a.request_id, c.engine_id, c.run_id, a.tenant_id, a.tier, c.model, a.arrived_ns, seq.scheduled_ns,
                    seq.first_token_ns, at, a.prompt_tokens, seq.cached, seq.output, None, a.max_tokens, reason,
                    seq.preemptions, a.prefix_ids, gpu_ns)
        )  # fmt: skip
