"""A store made of lists, and a minute of a story to fill it with."""

from __future__ import annotations

from decimal import Decimal
from functools import cache
from itertools import pairwise
from math import sin
from threading import Event
from time import monotonic
from types import SimpleNamespace

import pytest

from farebox.events import (
    ADVICE,
    ALERTS,
    BUDGET_STATES,
    PRICES,
    SOURCE_STATES,
    TEAM_RENAMES,
    TENANTS,
    BudgetState,
    GpuSample,
    Interval,
    Rate,
    Request,
    Run,
    Share,
    Step,
    Tenant,
)
from farebox.roofline import StepModel
from farebox.tui.app import FareboxApp
from farebox.tui.feed import Feed

S = 1_000_000_000
MS = 1_000_000
START = 1_767_225_600 * S  # 2026-01-01T00:00:00Z
MODEL = StepModel(300_000 << 20, 6_000_000 << 20, 20_000 << 20, *[0] * 7).to_json()
PEAKS = {"H100": (989_000_000_000_000, 3_350_000_000_000)}


def make_budget(spent: str | None, soft: str | None = None, hard: str | None = None, **changes) -> BudgetState:
    """How Support stands in January; amounts in dollars."""
    amounts = [None if text is None else int(Decimal(text) * 10**6) for text in (spent, None, soft, hard)]
    state = BudgetState("Support", "2026-01", "UTC", "USD", *amounts, None, None, "within", None, START)
    return state._replace(**changes)


def make_tenant(tenant_id: str, team: str | None, from_ns: int = 0, to_ns: int | None = None) -> Tenant:
    return Tenant(tenant_id, tenant_id, team, None, None, from_ns, to_ns)


class FakeReader:
    """Answers like `LiveReader`, from lists; raises `error` while it is set."""

    def __init__(self) -> None:
        self.run_list: list[Run] = []
        self.rate_list: list[Rate] = []
        self.step_list: list[Step] = []
        self.share_list: list[Share] = []
        self.request_list: list[Request] = []
        self.settings_of = {
            t: [] for t in (BUDGET_STATES, TENANTS, TEAM_RENAMES, PRICES, SOURCE_STATES, ALERTS, ADVICE)
        }
        self.gpu_list: list[GpuSample] = []
        self.interval_list: list[Interval] = []
        self.settings_read = 0
        self.error: Exception | None = None
        self.polls = 0
        self.close_called = Event()
        self.read_rows = 0

    def version(self):
        return None

    def runs(self):
        self._check()
        self.polls += 1
        return list(self.run_list)

    def rates(self):
        self._check()
        return list(self.rate_list)

    def settings(self, table):
        self._check()
        self.settings_read += 1
        return list(self.settings_of[table])

    def newest_ns(self):
        return max((run.wall_end_ns for run in self.run_list), default=None)

    def steps(self, after_id=None, since_ns=None, limit=20_000):
        return self._rows(self.step_list, lambda s: s.started_ns, after_id, since_ns, limit)

    def shares(self, after_id=None, since_ns=None, limit=20_000):
        return self._rows(self.share_list, lambda s: s.started_ns, after_id, since_ns, limit)

    def requests(self, after_id=None, since_ns=None, limit=20_000):
        return self._rows(self.request_list, lambda r: r.finished_ns, after_id, since_ns, limit)

    def intervals(self, after_id=None, since_ns=None, limit=20_000):
        return self._rows(self.interval_list, lambda i: i.started_ns, after_id, since_ns, limit)

    def gpu_samples(self, after_id=None, since_ns=None, limit=20_000):
        return self._rows(self.gpu_list, lambda g: g.at_ns, after_id, since_ns, limit)

    def archive_of(self, table, run, since_ns):
        return None

    def close(self):
        self.close_called.set()

    def _check(self):
        if self.error is not None:
            raise self.error

    def _rows(self, rows, when, after_id, since_ns, limit):
        self._check()
        if after_id is not None:
            found = list(enumerate(rows[after_id : after_id + limit], after_id + 1))
        else:
            found = [(i, r) for i, r in enumerate(rows, 1) if since_ns is None or when(r) >= since_ns][:limit]
        self.read_rows += len(found)
        last = found[-1][0] if found else len(rows) if after_id is None else after_id
        return [row for _, row in found], last


def make_run(**changes) -> Run:
    run = Run(
        engine_id="vllm-0",
        run_id="run-1",
        host="gpu-node-1",
        gpu_type="H100",
        gpu_uuids=(),
        gpus=1,
        model="llama-3-8b",
        weights="bf16",
        mode="continuous",
        max_num_seqs=64,
        max_num_batched_tokens=8192,
        block_bytes=2_097_152,
        kv_blocks=10_000,
        step_model=MODEL,
        clock="virtual",
        started_ns=START,
        load_ns=0,
        heartbeat_ns=START,
        ended_ns=None,
    )
    return run._replace(**changes)


def make_step(seq: int, started_ns: int, duration_ns: int, **changes) -> Step:
    step = Step(
        engine_id="vllm-0",
        run_id="run-1",
        step_seq=seq,
        started_ns=started_ns,
        duration_ns=duration_ns,
        idle_before_ns=0,
        gpus=1,
        prefill_ns=0,
        decode_ns=duration_ns,
        running=1,
        waiting=0,
        prefill_seqs=0,
        decode_seqs=1,
        prefill_tokens=0,
        decode_tokens=1,
        output_tokens=1,
        cached_tokens=0,
        recomputed_tokens=0,
        rejected_tokens=0,
        kv_blocks_used=100,
        kv_blocks_total=1000,
        preemptions=0,
        held_by=None,
        flops=None,
        bytes=None,
        basis="step",
    )
    return step._replace(**changes)


def make_share(step: Step, tenant_id: str = "acme", **changes) -> Share:
    share = Share(
        engine_id=step.engine_id,
        run_id=step.run_id,
        step_seq=step.step_seq,
        started_ns=step.started_ns,
        account="tenant",
        tenant_id=tenant_id,
        tier="standard",
        phase="decode",
        seqs=1,
        rows=1,
        output_tokens=1,
        cached_tokens=0,
        attn=0,
        kv_block_ns=0,
        gpu_ns=step.duration_ns * step.gpus,
    )
    return share._replace(**changes)


def make_request(number: int, finished_ns: int, **changes) -> Request:
    request = Request(
        request_id=f"r-{number}",
        engine_id="vllm-0",
        run_id="run-1",
        tenant_id="acme",
        tier="standard",
        model="llama-3-8b",
        arrived_ns=finished_ns - 2 * S,
        scheduled_ns=finished_ns - 2 * S,
        first_token_ns=finished_ns - S,
        finished_ns=finished_ns,
        prompt_tokens=100,
        cached_tokens=0,
        output_tokens=51,
        reasoning_tokens=None,
        max_tokens=None,
        finish_reason="stop",
        preemptions=0,
        prefix_ids=None,
        gpu_ns=None,
    )
    return request._replace(**changes)


def make_gpu(number: int = 0, at_ns: int = START, **changes) -> GpuSample:
    """An H100 that is busy all the time and draws little power, as case A18 has it."""
    gpu = GpuSample(
        *("gpu-node-1", f"GPU-{number}", at_ns, number, "NVIDIA H100 80GB HBM3", None, "ok", 100),
        *(73 << 30, 80 << 30, "own", 190_000, "average", 700_000, 1, "counter", 1980, 55, None),
    )
    return gpu._replace(**changes)


def make_rate(price: str = "4.29", gpu_type: str = "*", currency: str = "USD") -> Rate:
    scope, name = ("any", "") if gpu_type == "*" else ("gpu_type", gpu_type)
    return Rate(scope, name, currency, price, None, 0, None, "example")


RIDERS = (("support-chat", "standard", 8), ("code-completion", "standard", 5), ("nightly-eval", "batch", 3))


def tell_story(seconds: int = 120, tenants=RIDERS) -> FakeReader:
    """Some minutes of a busy day, the same every time: waves of riders, a queue now and then, pauses, a fast tenant."""
    store = FakeReader()
    store.rate_list = [make_rate()]
    at, seq = START, 0
    while at < START + seconds * S:
        t = (at - START) / S
        wave = 1.8 + sin(t / 9) + 0.6 * sin(t / 2.3)
        idle = 700 * MS if seq % 90 == 89 else 0
        cells = [(n, tier, max(0, round(base * wave))) for n, tier, base in tenants]
        cells += [("voice", "fast", 1)] if int(t / 7) % 3 == 0 else []
        cells = [c for c in cells if c[2]]
        prompt = 384 if seq % 6 == 0 else 0
        step, shares = _ride(seq, at + idle, idle, cells, prompt, max(0, round(3 * sin(t / 5))))
        store.step_list.append(step)
        store.share_list += shares
        if seq % 11 == 0:
            store.request_list.append(_arrival(seq, step))
        at, seq = step.ended_ns, seq + 1
    store.run_list = [make_run(heartbeat_ns=at)]
    return store


def _ride(seq, at, idle, cells, prompt, waiting):
    riders = sum(n for _, _, n in cells)
    duration = 6_300_000 + 110_000 * riders + 21_000 * prompt + seq % 7 * 1000
    prefill = 21_000 * prompt
    step = make_step(
        seq,
        at,
        duration,
        idle_before_ns=idle,
        running=riders + (1 if prompt else 0),
        waiting=waiting,
        prefill_ns=prefill,
        decode_ns=duration - prefill,
        prefill_tokens=prompt,
        cached_tokens=prompt // 2,
        decode_tokens=riders,
        output_tokens=riders,
        kv_blocks_used=200 + 14 * riders,
        flops=16_000_000_000 * (riders + prompt),
        bytes=16_000_000_000 + riders * 90_000_000,
        preemptions=1 if seq % 500 == 499 else 0,
    )
    weights = [n for _, _, n in cells]
    cuts = [(duration - prefill) * sum(weights[:i]) // riders for i in range(len(weights) + 1)]
    shares = [
        make_share(step, name, tier=tier, seqs=n, rows=n, output_tokens=n, gpu_ns=b - a, attn=(90_000 * n) << 20)
        for (name, tier, n), (a, b) in zip(cells, pairwise(cuts), strict=True)
    ]
    if prompt:
        account = "overhead" if seq % 60 == 0 else "tenant"
        name = cells[seq // 6 % len(cells)][0]
        shares.append(
            make_share(
                step,
                name,
                tier={n: t for n, t, _ in cells}[name],
                account=account,
                phase="prefill",
                rows=prompt,
                cached_tokens=prompt // 2,
                output_tokens=0,
                gpu_ns=prefill,
            )
        )
    return step, shares


def _arrival(seq, step):
    end = step.ended_ns
    wait = (90 + seq * 37 % 400) * MS
    return make_request(seq, end, arrived_ns=end - wait - S, first_token_ns=end - S, output_tokens=40 + seq % 30)


def make_feed(reader: FakeReader, **options) -> Feed:
    """A feed whose clocks stand still at the newest event."""
    newest = reader.newest_ns() or START
    return Feed(reader, PEAKS.get, wall_ns=lambda: newest, steady_ns=lambda: 0, **options)


async def settled(pilot, seen, patience_s=120) -> None:
    """Wait until `seen(app)` and what it led to is drawn: the worker polls in a thread of its own."""
    give_up = monotonic() + patience_s
    while not seen(pilot.app):
        assert monotonic() < give_up, "the app did not get there"
        await pilot.pause(0.01)
    await pilot.pause()


async def at_rest(pilot) -> None:
    """Wait until the picture stays as it is: a widget that appears is laid out first and drawn then."""
    before, now = None, pilot.app.screen._compositor.render_strips()
    while now != before:
        await pilot.pause(0.02)
        before, now = now, pilot.app.screen._compositor.render_strips()


def make_app(reader: FakeReader, **options) -> FareboxApp:
    """The app on a fake store."""
    return FareboxApp(lambda: reader, make_feed, wall_ns=lambda: START, **options)


@cache
def ladder(steps: int) -> FakeReader:
    """Steps of 370 ms for three tenants, with a little idle time before each."""
    store = FakeReader()
    store.rate_list = [make_rate()]
    for seq in range(steps):
        step = make_step(seq, START + seq * 400 * MS + 30 * MS, 370 * MS, idle_before_ns=30 * MS, running=3)
        store.step_list.append(step)
        paid = (100 * MS + 1, 120 * MS, 150 * MS - 1)
        store.share_list += [make_share(step, f"t{i}", gpu_ns=ns) for i, ns in enumerate(paid)]
    store.run_list = [make_run(heartbeat_ns=START + steps * 400 * MS)]
    return store


@pytest.fixture(scope="session")
def make() -> SimpleNamespace:
    """Makers of records, feeds and apps; `make.S` and `make.MS` are a second and a millisecond in ns."""
    return SimpleNamespace(
        S=S,
        MS=MS,
        START=START,
        MODEL=MODEL,
        run=make_run,
        step=make_step,
        share=make_share,
        request=make_request,
        rate=make_rate,
        gpu=make_gpu,
        budget=make_budget,
        tenant=make_tenant,
        feed=make_feed,
        app=make_app,
        story=tell_story,
        ladder=ladder,
        store=FakeReader,
        settled=settled,
        at_rest=at_rest,
    )


@pytest.fixture(scope="session")
def told() -> FakeReader:
    """The story; nobody may change it."""
    return tell_story(90)


@pytest.fixture
def store() -> FakeReader:
    return FakeReader()


@pytest.fixture(scope="session")
def recorded(tmp_path_factory):
    """A real store with two minutes of the demo, the same every time."""
    from itertools import takewhile

    from farebox.collector.embedded import EmbeddedEngine, record
    from farebox.engine.workloads import demo
    from farebox.roofline import Replica, gpu, model
    from farebox.storage.store import create_store

    place = tmp_path_factory.mktemp("recorded") / "store"
    engine = EmbeddedEngine(Replica(gpu("h100"), model("llama-3-8b")), max_num_seqs=64, fast_cap=8, engine_id="demo")
    arrivals = takewhile(lambda arrival: arrival.arrived_ns < START + 100 * S, demo.generate(START))
    with create_store(place) as store:
        store.put_rate(make_rate())
        record(engine.config(["demo"]), arrivals, store)
    return place
