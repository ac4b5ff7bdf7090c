"""Steps that were leapt over are the same, to the last integer, as steps taken one by one."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st
from properties import tries

from farebox.collector.expand import expand
from farebox.engine.arrival import Arrival
from farebox.engine.config import EngineConfig
from farebox.engine.engine import Engine
from farebox.engine.replay import replay
from farebox.events import SHARES, STEPS
from farebox.roofline import UNITS_PER_NS, StepModel

START_NS = 1_700_000_000_000_000_000
MODEL = StepModel(
    overhead=350_000 * UNITS_PER_NS + 12_345,
    weights=5_600_000 * UNITS_PER_NS + 77,
    row=1_800_000 * UNITS_PER_NS + 999,
    row_comm=501,
    kv_token=46_031_117,
    attn_pair=795_001,
    weight_bytes=16_000_000_000,
    kv_token_bytes=131_072,
    flops_row=16_000_000_000,
    flops_pair=524_288,
)


class Steps:
    """A sink that is told every step."""

    def __init__(self):
        self.runs, self.steps, self.shares, self.requests = [], [], [], []

    def run(self, run):
        self.runs.append(run)

    def step(self, step, cells):
        self.steps.append(step)
        self.shares.extend(cells)

    def request(self, request):
        self.requests.append(request)


class Leaps(Steps):
    """A sink that is told runs of decode steps, and spells them out."""

    def __init__(self):
        super().__init__()
        self.leaps = []

    def decodes(self, run):
        self.leaps.append(run)
        steps, shares = expand(self.runs[0], [run])
        self.steps.extend(STEPS.from_arrow(steps))
        self.shares.extend(SHARES.from_arrow(shares))


def serve(sink, config, arrivals):
    replay(Engine(config, sink, arrivals[0].arrived_ns), arrivals)
    return sink


@st.composite
def workloads(draw):
    count, rng = draw(st.integers(1, 30)), Random(draw(st.integers(0, 2**32 - 1)))
    gap_ns = rng.choice([0, 50_000_000, 400_000_000, 5_000_000_000])
    at, arrivals = START_NS, []
    for number in range(count):
        at += rng.randint(0, gap_ns)
        tier = rng.choice(["standard", "standard", "fast", "batch"])
        abort_ns = at + rng.randint(0, 2_000_000_000) if rng.random() < 0.1 else None
        prompt, output = rng.randint(1, 200), rng.randint(0, 120)
        topic = rng.choice([10, 10, 20])
        ids = tuple(range(topic, topic + rng.randint(0, 8))) or None
        arrivals.append(Arrival(str(number), rng.choice("abc"), tier, at, prompt, output, None, ids, abort_ns))
    return arrivals


@st.composite
def configs(draw):
    mode = draw(st.sampled_from(["continuous", "continuous", "static", "none"]))
    block_size = draw(st.sampled_from([1, 4, 16]))
    return EngineConfig(
        engine_id="e",
        run_id="r",
        host="h",
        gpu_type="h100_sxm",
        gpus=draw(st.integers(1, 4)),
        model="m",
        weights="bf16",
        kv_blocks=draw(st.integers(21, 80)),
        block_bytes=1,
        block_size=block_size,
        enable_prefix_caching=draw(st.booleans()),
        prefix_block_tokens=block_size * draw(st.sampled_from([1, 4])),
        step_model=MODEL,
        mode=mode,
        scheduling_policy=draw(st.sampled_from(["fcfs", "priority"])),
        max_num_seqs=draw(st.integers(1, 12)),
        max_num_batched_tokens=draw(st.integers(1, 96)),
        fast_cap=draw(st.none() | st.integers(1, 4)) if mode == "continuous" else None,
    )


@tries(40)
@given(arrivals=workloads(), config=configs())
def test_leaping_changes_nothing(arrivals, config):
    one_by_one, leaping = serve(Steps(), config, arrivals), serve(Leaps(), config, arrivals)
    assert leaping.steps == one_by_one.steps
    assert leaping.shares == one_by_one.shares
    assert leaping.requests == one_by_one.requests
    assert leaping.runs[-1] == one_by_one.runs[-1]
    steps, shares = expand(leaping.runs[0], leaping.leaps)
    inside = {number for run in leaping.leaps for number in range(run.first_seq, run.first_seq + run.steps)}
    assert STEPS.from_arrow(steps) == [step for step in one_by_one.steps if step.step_seq in inside]
    assert SHARES.from_arrow(shares) == [share for share in one_by_one.shares if share.step_seq in inside]


def test_a_lone_rider_is_carried_in_one_leap():
    config = EngineConfig(
        engine_id="e", run_id="r", host="h", gpu_type="h100_sxm", gpus=1, model="m", weights="bf16", kv_blocks=1000,
        block_bytes=1, step_model=MODEL,
    )  # fmt: skip
    leaping = serve(Leaps(), config, [Arrival("0", "a", "standard", START_NS, 100, 900)])
    assert len(leaping.steps) == 900 and [run.steps for run in leaping.leaps] == [899]
