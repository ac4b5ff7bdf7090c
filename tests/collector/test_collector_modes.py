"""Every mode's steps can be paid for: what cells owe is what the step lasted, to the nanosecond."""

from random import Random

import pytest

from farebox.collector.embedded import EmbeddedEngine
from farebox.costing.shares import split_steps
from farebox.engine.arrival import Arrival
from farebox.engine.engine import Engine
from farebox.engine.replay import replay
from farebox.events import SHARES, STEPS
from farebox.roofline import Replica, gpu, model

START_NS = 1_767_225_600_000_000_000


class Kept:
    """A sink that keeps steps and cells."""

    def __init__(self):
        self.steps, self.cells = [], []

    def run(self, run):
        pass

    def step(self, step, cells):
        self.steps.append(step)
        self.cells.extend(cells)

    def request(self, request):
        pass


def traffic():
    rng = Random(4)
    tiers = ("fast", "standard", "batch")
    for number in range(60):
        at_ns = START_NS + number * 20_000_000
        ids = (1, 2, *range(10 * number, 10 * number + 3))
        yield Arrival(str(number), f"t{number % 4}", tiers[number % 3], at_ns, rng.randint(900, 2_500), 40, None, ids)


@pytest.mark.parametrize(
    "changes",
    [
        {"enable_prefix_caching": True},
        {"scheduling_policy": "priority"},
        {"num_speculative_tokens": 4},
        {"num_speculative_tokens": 3, "draft": Replica(gpu("h100"), model("llama-3-8b"), tp=4)},
        {"mode": "static", "max_num_seqs": 8, "num_speculative_tokens": 2, "enable_prefix_caching": True},
    ],
)
def test_what_cells_owe_is_what_steps_last(changes):
    config = EmbeddedEngine(Replica(gpu("h100"), model("llama-3-70b"), tp=4), **changes).config(["test"])
    kept = Kept()
    replay(Engine(config, kept, START_NS), traffic())
    owed = config.step_model
    for step in kept.steps:
        cells = [c for c in kept.cells if c.step_seq == step.step_seq]
        units = owed.step(sum(c.rows for c in cells), sum(c.attn for c in cells))
        assert abs(step.duration_ns - (units >> 20)) <= 1
    steps, shares = split_steps(STEPS.to_arrow(kept.steps), SHARES.to_arrow(kept.cells), owed, measured=False)
    paid = dict.fromkeys(range(len(kept.steps)), 0)
    for share in SHARES.from_arrow(shares):
        paid[share.step_seq] += share.gpu_ns
    assert paid == {step.step_seq: step.duration_ns * step.gpus for step in STEPS.from_arrow(steps)}


def test_a_draft_model_takes_room_from_the_cache():
    target = Replica(gpu("h100"), model("llama-3-70b"), tp=4)
    draft = Replica(gpu("h100"), model("llama-3-8b"), tp=4)
    alone = EmbeddedEngine(target, num_speculative_tokens=4).config([])
    beside = EmbeddedEngine(target, num_speculative_tokens=4, draft=draft).config([])
    per_block = beside.block_bytes + draft.block_bytes(16)
    assert (
        beside.kv_blocks
        == (alone.kv_blocks * alone.block_bytes - draft.model.resident_bytes("bf16")) // per_block
        < alone.kv_blocks
    )
