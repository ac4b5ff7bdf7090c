"""Whatever breaks in the plugin, vLLM's methods return what they would have returned, and its errors are its own."""

import logging

import pytest
from vllm_drive import Ask, Metered, sums, tell
from vllm_fake import FakeScheduler

ASKS = [Ask(number, "ab"[number % 2], 20, 15, stop_at=None if number % 3 else 7) for number in range(8)]
METHODS = ("enter", "arrive", "depart", "arrived", "told", "left", "recover")


def outcomes(metered: Metered) -> list[object]:
    """What vLLM itself does, step by step."""
    return metered.run().scheduler.history


class Broken:
    """A method that raises at every n-th call."""

    def __init__(self, method, every: int, where: str) -> None:
        self.method, self.every, self.where, self.calls = method, every, where, 0

    def __call__(self, *args):
        self.calls += 1
        if self.calls % self.every:
            return self.method(*args)
        if self.where == "after":
            self.method(*args)
        raise RuntimeError("injected")


@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("name", METHODS[1:])
@pytest.mark.parametrize("every", [1, 3])
def test_vllm_does_the_same_with_a_broken_plugin(name, every, depth):
    unharmed = outcomes(Metered(ASKS, depth=depth, blocks=40))
    metered = Metered(ASKS, depth=depth, blocks=40)
    for where in ("before", "after"):
        setattr(metered.meter, name, Broken(getattr(metered.meter, name), every, where))
    assert outcomes(metered) == unharmed


def test_after_repeated_faults_the_plugin_takes_itself_out_and_says_so_once(caplog):
    metered = Metered(ASKS)
    metered.meter.depart = Broken(metered.meter.depart, 1, "before")
    with caplog.at_level(logging.INFO, "vllm.farebox"):
        metered.run()
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "off until vLLM is restarted" in caplog.text and "injected" in caplog.text
    assert metered.guard.is_off
    assert not {"schedule", "update_from_output", "add_request", "_free_request"} & set(vars(metered.scheduler))


@pytest.mark.parametrize("options", [{}, {"depth": 2}, {"drafts": 2}])
@pytest.mark.parametrize("lost", [1, 10])
def test_a_fault_costs_its_step_and_what_follows_is_exact_again(lost, options):
    metered = Metered([Ask(number, "acme", 20, 40) for number in range(4)], budget=8, blocks=1000, **options)
    depart, calls = metered.meter.depart, []

    def once(scheduled):
        calls.append(scheduled)
        if len(calls) == lost:
            raise KeyError("injected")
        depart(scheduled)

    metered.meter.depart = once
    metered.run()
    told = {event["step"]["step_seq"]: event for event in tell(metered, "step")}
    assert set(range(len(metered.naive))) - set(told) == {lost - 1}, "the lost step is a hole"
    for number, event in told.items():
        assert sums(event) == +metered.naive[number]


def test_a_position_that_is_not_vllms_is_no_fault_and_sums_are_made_anew():
    metered = Metered([Ask(0, "acme", 20, 12), *(Ask(0, "globex", 20, 40) for _ in range(3))], blocks=1000)
    for step in range(8):
        metered.come(step)
        metered.step()
    metered.scheduler.requests["r0"].num_computed_tokens += 5
    metered.scheduler.finish_requests(["r0"])
    assert not metered.meter._riders.members
    while metered.scheduler.requests:
        metered.step()
    assert metered.guard.faults == 0
    assert [sums(event) for event in tell(metered, "step")] == [+cells for cells in metered.naive]


def test_what_vllm_raises_is_raised(monkeypatch):
    def broken(self, *args):
        raise ZeroDivisionError("vLLM's own")

    monkeypatch.setattr(FakeScheduler, "schedule", broken)
    metered = Metered(ASKS)
    metered.come(0)
    with pytest.raises(ZeroDivisionError, match="vLLM's own"):
        metered.step()
    assert metered.guard.faults == 0


def test_keyword_arguments_and_results_pass_through():
    metered = Metered(ASKS)
    metered.come(0)
    out = metered.scheduler.schedule(throttle_prefills=True)
    made = metered.scheduler.run_model(out)
    outputs = metered.scheduler.update_from_output(scheduler_output=out, model_runner_output=made)
    assert [o.request_id for o in outputs[0].outputs] == ["r0"]
    assert metered.scheduler._free_request(metered.scheduler.requests["r0"], delay_free_blocks=True) == (
        "kv transfer parameters"
    )
    assert len(tell(metered, "step")) == 1 and metered.guard.faults == 0


def test_nothing_is_set_on_what_vllm_sends_to_its_workers():
    metered = Metered(ASKS)
    metered.come(0)
    bare = set(vars(FakeScheduler().schedule()))
    assert set(vars(metered.scheduler.schedule())) == bare


def test_batches_that_never_come_back_are_not_kept():
    metered = Metered([Ask(0, "acme", 5000, 1)], budget=4, blocks=10_000)
    metered.come(0)
    for _ in range(200):
        metered.scheduler.schedule()
    assert len(metered.meter._pending) <= 64


def test_state_goes_with_the_requests():
    metered = Metered([Ask(number, f"tenant-{number}", 6, 4) for number in range(50)], blocks=1000).run()
    meter = metered.meter
    metered.queued.clear()
    assert not meter._rides and not meter._left and not meter._irregular and not meter._pending
    assert not meter._riders.members and not list(meter._groups)
