"""The jump engine tells what the engine tells, to the last integer: every step, cell and request."""

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties import tries

from farebox.engine.arrival import Arrival
from farebox.engine.jump.caching import jump_engine
from farebox.engine.jump.engine import JumpEngine
from farebox.engine.jump.requests import REASONS, UNKNOWN
from farebox.engine.jump.spell import Speller
from farebox.events import Request, Share, Step


class Told:
    """What a jump engine's columns say, record by record."""

    def __init__(self, config, arrivals, most):
        self.config, self.steps, self.shares, self.requests = config, [], [], []
        engine = jump_engine(config, arrivals[0], arrivals[1:])
        speller = Speller(config, engine.inflow)
        while (segment := engine.segment(most)) is not None:
            assert segment.steps <= most
            self._tell(speller.spell(segment))
            self.ended_ns = segment.now_ns

    def _tell(self, spelled):
        config, columns = self.config, spelled.steps._asdict()
        steps = [dict(zip(columns, row, strict=True)) for row in zip(*map(list, columns.values()), strict=True)]
        for number, row in enumerate(steps, spelled.first):
            known = {"engine_id": config.engine_id, "run_id": config.run_id, "step_seq": number, "gpus": config.gpus}
            split = {"prefill_ns": None, "decode_ns": None, "held_by": None, "basis": "step"}
            never = {"rejected_tokens": 0, "kv_blocks_total": config.usable_blocks}
            self.steps.append(Step(**known, **split, **never, **row))
        for (step, key, *sums, _, _), kv in zip(zip(*spelled.cells, strict=True), spelled.kv_block_ns, strict=True):
            head = config.engine_id, config.run_id, spelled.first + step, steps[step]["started_ns"]
            self.shares.append(Share(*head, *spelled.keys[key], *sums, kv, None))
        columns = spelled.requests._asdict()
        for values in zip(*map(list, columns.values()), strict=True):
            row = dict(zip(columns, values, strict=True))
            unknown = {name: None for name in ("scheduled_ns", "first_token_ns", "max_tokens") if row[name] == UNKNOWN}
            tenant_id, tier = spelled.groups[row.pop("group")]
            names = {"engine_id": config.engine_id, "run_id": config.run_id, "model": config.model}
            names |= {"tenant_id": tenant_id, "tier": tier, "finish_reason": REASONS[row.pop("reason")]}
            self.requests.append(Request(**{**row, **unknown}, **names, reasoning_tokens=None))


def agree(kit, config, arrivals, most):
    told, tape = Told(config, arrivals, most), kit.serve(config, arrivals)
    assert told.steps == tape.steps
    assert told.shares == [share for cells in tape.cells for share in cells]
    assert told.requests == tape.requests
    assert told.ended_ns == tape.runs[-1].ended_ns
    return told


def workload(rng, start_ns):
    """Up to fifty requests of a few tenants, crowded or far apart; a random number generator is quicker than draws."""
    gaps = rng.choice([[0, 0, 1, 333_333, 7_000_001, 90_000_000], [5_000_000_000, 1_000, 400_000_000]])
    tenants, tiers = rng.choice(["a", "ab", "abc"]), rng.choice([["standard"], ["fast", "standard", "batch"]])
    turns = [[rng.randint(1, 2) for _ in range(8)] for _ in range(rng.randint(1, 4))]
    heads = [tuple(int("".join(map(str, taken[:n]))) for n in range(1, 9)) for taken in turns]
    longest, patience = rng.choice([8, 60, 400]), rng.choice([0.0, 0.0, 0.3])
    at_ns = start_ns
    for number in range(rng.randint(1, 50)):
        at_ns += rng.choice(gaps)
        yield Arrival(
            f"{number}",
            rng.choice(tenants),
            rng.choice(tiers),
            at_ns,
            rng.randint(1, rng.choice([20, 150])),
            rng.randint(0, longest),
            rng.choice([None, rng.randint(0, 70)]),
            rng.choice([None, (*rng.choice(heads)[: rng.randint(1, 8)], -1 - number)]),
            at_ns + rng.randint(0, 300_000_000) if rng.random() < patience else None,
        )


@tries(40)
@given(
    caching=st.booleans(),
    rng=st.builds(Random, st.integers(0, 2**32)),
    blocks=st.sampled_from([3, 12, 30, 60, 10_000]),
    most=st.sampled_from([7, 40, 4096]),
)
def test_every_step_cell_and_request_is_the_same(kit, caching, rng, blocks, most):
    config = kit.config(
        gpus=rng.choice([1, 2]),
        kv_blocks=blocks,
        block_size=rng.choice([1, 4, 16]),
        enable_prefix_caching=caching,
        prefix_block_tokens=16,
        max_num_seqs=rng.randint(1, 12),
        max_num_batched_tokens=rng.choice([rng.randint(1, 120), 400]),
    )
    agree(kit, config, list(workload(rng, kit.start_ns)), most)


def test_a_quiet_queue_behind_a_full_cache_is_leapt_over(kit):
    """Arrivals that only wait end no leap, and one that can never fit is rejected when its step comes all the same."""
    long = [kit.arrival(0, prompt=60, output=900), kit.arrival(1, prompt=20, output=500)]
    waiting = [kit.arrival(n, at_ms=n * 40, prompt=1300, output=20) for n in range(2, 12)]
    hopeless = [kit.arrival(12, at_ms=481, prompt=5000), kit.arrival(13, at_ms=600, prompt=30, tier="fast")]
    told = agree(kit, kit.config(kv_blocks=90), long + waiting + hopeless, 10_000)
    assert max(step.waiting for step in told.steps) >= 10
    assert [r.finish_reason for r in told.requests].count("rejected") == 1


def test_idle_time_between_requests_is_told_exactly(kit):
    far = [kit.arrival(n, at_ms=n * 7_000, output=n) for n in range(6)]
    told = agree(kit, kit.config(), far, 3)
    assert sum(step.idle_before_ns for step in told.steps) > 20_000_000_000


@pytest.mark.parametrize(
    ("arrivals", "message"),
    [
        ([(0, 10, 1), (-1, 10, 1)], "arrives before"),
        ([(0, 10, 1), (5, 0, 1)], "prompt of at least one token"),
        ([(0, 10, 1), (5, 10, -2)], "no negative length"),
    ],
)
def test_what_no_engine_can_serve_is_refused(kit, arrivals, message):
    first, *rest = (kit.arrival(n, at_ms, prompt, output) for n, (at_ms, prompt, output) in enumerate(arrivals))
    with pytest.raises(ValueError, match=message):
        JumpEngine(kit.config(), first, rest).segment(100)


def test_ids_are_unique(kit):
    twin = kit.arrival(1)
    with pytest.raises(ValueError, match="twice"):
        JumpEngine(kit.config(), twin, [twin]).segment(100)


def test_hours_of_fractions_do_not_drift(kit):
    """A segment may last longer than 64 bits hold in clock units."""
    slow = replace(kit.model, overhead=kit.model.overhead * 100_000 + 1)
    arrivals = [Arrival("0", "a", "standard", kit.start_ns, 10, 2_000), Arrival("1", "b", "fast", kit.start_ns, 9, 500)]
    told = agree(kit, kit.config(step_model=slow, kv_blocks=400), arrivals, 10_000)
    assert told.ended_ns - kit.start_ns > 19 * 3_600_000_000_000
