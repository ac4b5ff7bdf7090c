"""A small inference server, told as batches: what the stores under test are fed with."""

import random
from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple

import pyarrow as pa
import pytest

from farebox.events import (
    LEDGER,
    MINUTE_NS,
    REQUESTS,
    SHARES,
    STEPS,
    Batch,
    LedgerLine,
    Progress,
    Request,
    Run,
    Share,
    Step,
    Table,
)

START_NS = 1_767_311_940_000_000_000
"""2026-01-01T23:59:00Z: a minute before midnight, so that a run crosses hours and dates."""
TENANTS = (("chat", "standard"), ("code", "fast"), ("nightly", "batch"), ("voice", "fast"))


class Seat(NamedTuple):
    """One sequence on board."""

    tenant: tuple[str, str]
    context: int
    left: int


class Server:
    """Tells the life of one run in batches, the same for the same seed; `gap_ns` stretches it over hours."""

    def __init__(
        self, engine_id: str = "e0", run_id: str = "r0", start_ns: int = START_NS, seed: int = 7, gap_ns: int = 0
    ) -> None:
        self.random = random.Random(f"{engine_id}/{run_id}/{seed}")
        self.engine_id, self.run_id, self.start_ns = engine_id, run_id, start_ns
        self.now_ns, self.gap_ns = start_ns, gap_ns
        self.steps_told = self.requests_told = 0
        self.seats: list[Seat] = []

    def run(self, *, ended: bool = False) -> Run:
        return Run(
            self.engine_id,
            self.run_id,
            "host-ü 1",
            "H100",
            ("GPU-0", "GPU-1"),
            2,
            "llama-3-8b",
            "bf16",
            "continuous",
            32,
            None,
            2_097_152,
            30_000,
            '{"overhead": 1}',
            "virtual",
            self.start_ns,
            0,
            self.now_ns,
            self.now_ns if ended else None,
        )

    def batch(self, steps: int, *, ended: bool = False) -> Batch:
        """The next so many steps, with the requests that end and the minutes they fall in."""
        told: list[Step] = []
        cells: list[Share] = []
        requests: list[Request] = []
        lines: list[LedgerLine] = []
        for _ in range(steps):
            self._admit()
            step, shares = self._step()
            told.append(step)
            cells += shares
            lines += [self._line(share) for share in shares]
            requests += self._leave()
        self.steps_told += len(told)
        self.requests_told += len(requests)
        progress = Progress(self.steps_told, self.requests_told, self.now_ns)
        tables = zip((STEPS, SHARES, REQUESTS, LEDGER), (told, cells, requests, lines), strict=True)
        return Batch(self.run(ended=ended), *(table.to_arrow(rows) for table, rows in tables), progress)

    def _admit(self) -> None:
        if len(self.seats) < 32 and self.random.random() < 0.5:
            tenant = self.random.choices(TENANTS, (8, 4, 2, 1))[0]
            self.seats.append(Seat(tenant, self.random.randint(50, 4000), self.random.randint(1, 120)))

    def _step(self) -> tuple[Step, list[Share]]:
        cells = Counter(seat.tenant for seat in self.seats)
        context = sum(seat.context for seat in self.seats)
        duration = 5_000_000 + 900 * context // 100 + self.random.randrange(40_000)
        seq, at, n = self.steps_told_so_far(), self.now_ns, len(self.seats)
        held = "operator" if self.random.random() < 0.01 else None
        step = Step(
            self.engine_id, self.run_id, seq, at, duration, 0, 2, 0, duration, n, 0, 0, n, 0, n, n, 0, 0, 0,
            context // 16, 30_000, 0, held, n * 16_000_000_000 + context * 524_288, 16_000_000_000 + context * 131_072,
            "step",
        )  # fmt: skip
        shares = [self._share(step, tenant, count) for tenant, count in sorted(cells.items())]
        self.now_ns += duration + self.gap_ns
        return step, shares

    def steps_told_so_far(self) -> int:
        self._seq = getattr(self, "_seq", -1) + 1
        return self._seq

    def _share(self, step: Step, tenant: tuple[str, str], count: int) -> Share:
        context = sum(seat.context for seat in self.seats if seat.tenant == tenant)
        pays = 2 * step.duration_ns * count // max(step.running, 1)
        return Share(
            self.engine_id, self.run_id, step.step_seq, step.started_ns, "tenant", *tenant, "decode", count, count,
            count, 0, context * 41_231, context // 16 * step.duration_ns, pays,
        )  # fmt: skip

    def _line(self, share: Share) -> LedgerLine:
        minute = share.started_ns // MINUTE_NS * MINUTE_NS
        return LedgerLine(
            minute, self.engine_id, "host-ü 1", "H100", share.account, share.tenant_id, share.tier, "llama-3-8b",
            share.phase, share.gpu_ns or 0, 0, 0, share.output_tokens, 0, share.kv_block_ns, "step",
        )  # fmt: skip

    def _leave(self) -> list[Request]:
        self.seats = [seat._replace(context=seat.context + 1, left=seat.left - 1) for seat in self.seats]
        gone = [seat for seat in self.seats if seat.left <= 0]
        self.seats = [seat for seat in self.seats if seat.left > 0]
        return [self._request(seat, i) for i, seat in enumerate(gone)]

    def _request(self, seat: Seat, i: int) -> Request:
        prefix = None if i % 2 else tuple(self.random.randrange(2**40) for _ in range(i + 1))
        return Request(
            f"{self._seq}-{i}", self.engine_id, self.run_id, *seat.tenant, "llama-3-8b", self.now_ns - 10**9,
            self.now_ns - 10**8, None, self.now_ns, seat.context, 0, 100, None, 4096, "stop", 0, prefix, None,
        )  # fmt: skip


def contents(table: Table, rows: pa.Table) -> Any:
    """What rows say, whatever their order: a multiset of records, and the sums per key of a ledger."""
    records = table.from_arrow(rows)
    return ledger_sums(records) if table is LEDGER else Counter(records)


def ledger_sums(lines: Iterable[LedgerLine]) -> dict[tuple[Any, ...], list[int]]:
    names = [name for name in LedgerLine._fields if name not in LEDGER.key]
    sums: dict[tuple[Any, ...], list[int]] = {}
    for line in lines:
        amounts = sums.setdefault(tuple(getattr(line, name) for name in LEDGER.key), [0] * len(names))
        for i, name in enumerate(names):
            amounts[i] += getattr(line, name)
    return sums


def expected(table: Table, batches: Iterable[Batch]) -> Any:
    """What a store that recorded these batches must answer."""
    rows = [getattr(batch, table.name) for batch in batches]
    return contents(table, pa.concat_tables([table.schema.empty_table(), *rows]))


@pytest.fixture(scope="session")
def server() -> type[Server]:
    return Server


@pytest.fixture(scope="session")
def said() -> Any:
    return contents


@pytest.fixture(scope="session")
def told() -> Any:
    return expected
