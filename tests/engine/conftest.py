"""A tape that keeps what an engine tells, a small step model, and a slow engine that keeps every sequence by itself."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

import pytest
from hypothesis import strategies as st

from farebox.engine.arrival import Arrival
from farebox.engine.config import EngineConfig
from farebox.engine.engine import Engine
from farebox.engine.replay import replay
from farebox.events import Request, Run, Share, Step
from farebox.roofline.step_model import UNITS_PER_NS, StepModel

START_NS = 1_700_000_000_000_000_000
MODEL = StepModel(
    overhead=350_000 * UNITS_PER_NS + 12_345,
    weights=5_600_000 * UNITS_PER_NS + 77,
    row=23_000 * UNITS_PER_NS + 999,
    row_comm=501,
    kv_token=46_031_117,
    attn_pair=795_001,
    weight_bytes=16_000_000_000,
    kv_token_bytes=131_072,
    flops_row=16_000_000_000,
    flops_pair=524_288,
)


class Tape:
    """A sink that keeps everything."""

    def __init__(self) -> None:
        self.runs: list[Run] = []
        self.steps: list[Step] = []
        self.cells: list[list[Share]] = []
        self.requests: list[Request] = []

    def run(self, run: Run) -> None:
        self.runs.append(run)

    def step(self, step: Step, cells) -> None:
        self.steps.append(step)
        self.cells.append(list(cells))

    def request(self, request: Request) -> None:
        self.requests.append(request)

    @property
    def events(self):
        return self.steps, self.cells, self.requests


def config_of(**changes) -> EngineConfig:
    small = {
        "engine_id": "e", "run_id": "r", "host": "h", "gpu_type": "H100", "gpus": 1, "model": "m", "weights": "bf16",
        "kv_blocks": 65, "block_bytes": 2_097_152, "step_model": MODEL, "max_num_seqs": 8, "max_num_batched_tokens": 64,
    }  # fmt: skip
    return EngineConfig(**(small | changes))


def arrival_of(number: int, at_ms: int = 0, prompt: int = 20, output: int = 5, **changes) -> Arrival:
    tenant = changes.pop("tenant", "a")
    tier = changes.pop("tier", "standard")
    return Arrival(f"{tenant}-{number}", tenant, tier, START_NS + at_ms * 1_000_000, prompt, output, **changes)


def serve(config: EngineConfig, arrivals: list[Arrival], engine_class=Engine, **options) -> Tape:
    tape = Tape()
    replay(engine_class(config, tape, arrivals[0].arrived_ns if arrivals else START_NS), arrivals, **options)
    return tape


class CheckedEngine(Engine):
    """Recounts its books before and after every step."""

    def step(self) -> bool:
        self.check_integrity()
        stepped = super().step()
        self.check_integrity()
        return stepped


@st.composite
def workloads(draw, aborts: bool = True) -> list[Arrival]:
    """Up to forty requests within a fraction of a second: crowded enough for small caches."""
    count = draw(st.integers(1, 40))
    at_ns, arrivals = START_NS, []
    for number in range(count):
        at_ns += draw(st.sampled_from([0, 0, 1, 333_333, 7_000_001, 90_000_000]))
        output = draw(st.integers(0, 60))
        patience = draw(st.one_of(st.none(), st.integers(0, 300_000_000))) if aborts else None
        arrivals.append(
            Arrival(
                f"{number:02d}",
                draw(st.sampled_from(["a", "b", "c"])),
                draw(st.sampled_from(["fast", "standard", "standard", "batch"])),
                at_ns,
                draw(st.integers(1, 150)),
                output,
                draw(st.one_of(st.none(), st.integers(0, 70))),
                None,
                None if patience is None else at_ns + patience,
            )
        )
    return arrivals


@st.composite
def configs(draw) -> EngineConfig:
    mode = draw(st.sampled_from(["continuous", "continuous", "continuous", "static", "none"]))
    return config_of(
        mode=mode,
        gpus=draw(st.sampled_from([1, 2])),
        kv_blocks=draw(st.integers(2, 60)),
        block_size=draw(st.sampled_from([1, 4, 16])),
        max_num_seqs=draw(st.integers(1, 12)),
        max_num_batched_tokens=draw(st.integers(1, 120)),
        batch_wait_ms=draw(st.sampled_from([0, 5, 50])),
        fast_cap=draw(st.one_of(st.none(), st.integers(1, 4))) if mode == "continuous" else None,
    )


@dataclass
class _Seq:
    arrival: Arrival
    output: int = 0
    computed: int = 0
    high_water: int = 0
    blocks: int = 0
    preemptions: int = 0
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
        self.waiting: list[_Seq] = []
        self.running: list[_Seq] = []
        self.steps: list[Step] = []
        self.cells: list[list[Share]] = []
        self.requests: list[Request] = []

    def blocks(self, tokens: int) -> int:
        return (tokens + self.c.block_size - 1) // self.c.block_size

    @property
    def free(self) -> int:
        return self.c.kv_blocks - 1 - sum(s.blocks for s in self.running)

    @property
    def seats(self) -> int:
        return 1 if self.c.mode == "none" else min(self.c.max_num_seqs, self.c.max_num_batched_tokens)

    def serve(self, arrivals: list[Arrival]) -> ReferenceEngine:
        base = arrivals[0].arrived_ns
        clock, end_of_last, coming = 0, base, list(arrivals)
        while True:
            now = base + clock // UNITS_PER_NS
            while coming and coming[0].arrived_ns <= now:
                self.arrive(_Seq(coming.pop(0)), now)
            for seq in self.waiting + self.running:
                if seq.arrival.abort_ns is not None and seq.arrival.abort_ns <= now:
                    (self.running if seq in self.running else self.waiting).remove(seq)
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
        if self.blocks(seq.arrival.prompt_tokens + seq.target) > self.c.kv_blocks - 1:
            self.finish(seq, now, "rejected")
        else:
            self.waiting.append(seq)

    def next_waiting(self) -> _Seq:
        return min(self.waiting, key=lambda s: ["fast", "standard", "batch"].index(s.arrival.tier))

    def schedule_continuous(self, now: int):
        budget, rows, preemptions = self.c.max_num_batched_tokens, [], 0
        index = 0
        while index < len(self.running) and budget:
            seq = self.running[index]
            n = min(seq.tokens - seq.computed, budget)
            while self.blocks(seq.computed + n) - seq.blocks > self.free:
                victim = self.running.pop()
                victim.high_water = max(victim.high_water, victim.computed)
                victim.computed = victim.blocks = 0
                victim.preemptions += 1
                preemptions += 1
                self.waiting.insert(0, victim)
                if victim is seq:
                    break
            else:
                seq.blocks = self.blocks(seq.computed + n)
                rows.append((seq, n))
                budget -= n
                index += 1
                continue
            break
        held_by = None
        while not preemptions and self.waiting and budget and len(self.running) < self.seats:
            seq = self.next_waiting()
            if self.blocks(seq.tokens) > self.free:
                break
            fast = [s for s in self.running if s.arrival.tier == "fast"]
            if self.c.fast_cap is not None and fast and len(self.running) >= self.c.fast_cap:
                held_by = fast[0].arrival.tenant_id
                break
            self.waiting.remove(seq)
            self.running.append(seq)
            n = min(seq.tokens, budget)
            seq.blocks = self.blocks(n)
            rows.append((seq, n))
            budget -= n
        return rows, preemptions, held_by

    def deadline(self) -> int:
        return min(s.arrival.arrived_ns for s in self.waiting) + self.c.batch_wait_ms * 1_000_000

    def schedule_static(self, now: int):
        if not self.running and self.waiting:
            batch, rest, need = [], list(self.waiting), 0
            rest.sort(key=lambda s: ["fast", "standard", "batch"].index(s.arrival.tier))
            while rest and len(batch) < self.seats:
                need += self.blocks(rest[0].arrival.prompt_tokens + rest[0].target)
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
        for seq in self.running:
            n = min(seq.tokens - seq.computed, budget)
            if n:
                seq.blocks = self.blocks(seq.computed + n)
                rows.append((seq, n))
                budget -= n
        return rows

    def step_units(self, rows) -> int:
        attn = sum(self.c.step_model.attention(n, seq.computed) for seq, n in rows)
        return self.c.step_model.step(sum(n for _, n in rows), attn)

    def kind(self, seq: _Seq, position: int) -> tuple[str, str]:
        if position < seq.high_water:
            return "overhead", "prefill"
        return "tenant", "prefill" if position < seq.arrival.prompt_tokens else "decode"

    def tell(self, rows, preemptions, held_by, started, ended, end_of_last) -> None:
        cells: dict[tuple, dict[str, int]] = {}
        phases = {"prefill": [0, 0], "decode": [0, 0]}
        for seq, n in rows:
            kinds = [self.kind(seq, seq.computed + i) for i in range(n)]
            attn = self.c.step_model.attention(n, seq.computed)
            redone = kinds.count(("overhead", "prefill"))
            redo_attn = attn * redone // n
            for phase, (seqs, count) in phases.items():
                mine = sum(k[1] == phase for k in kinds)
                phases[phase] = [seqs + (mine > 0), count + mine]
            for kind in dict.fromkeys(kinds):
                key = (kind[0], seq.arrival.tenant_id, seq.arrival.tier, kind[1])
                cell = cells.setdefault(key, dict.fromkeys(("seqs", "rows", "out", "attn", "blocks"), 0))
                over = kind[0] == "overhead"
                cell["rows"] += kinds.count(kind)
                cell["attn"] += redo_attn if over else attn - redo_attn
                if over == (redone * 2 > n):
                    cell["seqs"] += 1
                    cell["blocks"] += seq.blocks
                if kind == kinds[-1] and seq.computed + n == seq.tokens and seq.target:
                    cell["out"] += 1
        pair_count = sum(seq.computed + i + 1 for seq, n in rows for i in range(n))
        c, number, model = self.c, len(self.steps), self.c.step_model
        self.cells.append(
            [
                Share(c.engine_id, c.run_id, number, started, *key, cell["seqs"], cell["rows"], cell["out"], 0,
                      cell["attn"], cell["blocks"] * (ended - started), None)
                for key, cell in sorted(cells.items())
            ]
        )  # fmt: skip
        self.steps.append(
            Step(
                c.engine_id, c.run_id, number, started, ended - started, started - end_of_last, c.gpus, None, None,
                len(self.running), len(self.waiting), phases["prefill"][0], phases["decode"][0], phases["prefill"][1],
                phases["decode"][1], sum(cell["out"] for cell in cells.values()), 0,
                sum(cell["rows"] for key, cell in cells.items() if key[0] == "overhead"), 0,
                sum(s.blocks for s in self.running), c.kv_blocks - 1, preemptions, held_by,
                model.flops(sum(n for _, n in rows), pair_count),
                model.bytes_read(sum(s.computed + n for s, n in rows)), "step",
            )
        )  # fmt: skip

    def advance(self, rows, started: int, ended: int) -> None:
        model, total = self.c.step_model, sum(n for _, n in rows)
        for seq, n in rows:
            shared = Fraction(model.overhead, len(rows)) + Fraction(model.linear(total) * n, total)
            seq.gpu += shared + model.attention(n, seq.computed)
        for seq, n in rows:
            seq.computed += n
            seq.scheduled_ns = started if seq.scheduled_ns is None else seq.scheduled_ns
            if seq.computed == seq.tokens and seq.target:
                seq.output += 1
                seq.first_token_ns = ended if seq.first_token_ns is None else seq.first_token_ns
            if seq.computed >= seq.arrival.prompt_tokens and seq.output == seq.target:
                self.running.remove(seq)
                limit = seq.arrival.max_tokens
                hit = limit is not None and seq.arrival.output_tokens >= limit
                self.finish(seq, ended, "length" if hit else "stop")

    def finish(self, seq: _Seq, at: int, reason: str) -> None:
        a, c = seq.arrival, self.c
        gpu_ns = int(seq.gpu / UNITS_PER_NS) * c.gpus
        self.requests.append(
            Request(a.request_id, c.engine_id, c.run_id, a.tenant_id, a.tier, c.model, a.arrived_ns, seq.scheduled_ns,
                    seq.first_token_ns, at, a.prompt_tokens, 0, seq.output, None, a.max_tokens, reason, seq.preemptions,
                    a.prefix_ids, gpu_ns)
        )  # fmt: skip


@dataclass(frozen=True)
class Kit:
    """What the tests of this folder share."""

    tape = Tape
    config = staticmethod(config_of)
    arrival = staticmethod(arrival_of)
    serve = staticmethod(serve)
    checked = CheckedEngine
    reference = ReferenceEngine
    start_ns = START_NS
    model = MODEL


@pytest.fixture(scope="session")
def kit() -> Kit:
    return Kit()


@pytest.fixture(scope="session")
def some_workloads():
    return workloads


@pytest.fixture(scope="session")
def some_configs():
    return configs
