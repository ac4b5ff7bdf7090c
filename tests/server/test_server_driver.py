"""Real time: steps take as long as the model says, and who hangs up is gone in the next step."""

import asyncio
import time
from itertools import pairwise

import pytest

from farebox.engine.arrival import Arrival
from farebox.engine.occupancy import Occupancy
from farebox.engine.server.answers import Answer, events


async def begin(served, tokens: int = 3000, **more):
    """A stream that has got its first token."""
    stream = await served.client().completions.create(
        model="tiny", prompt="a" * 640, max_tokens=tokens, stream=True, **more
    )
    await anext(aiter(stream))
    return stream


async def test_a_client_that_hangs_up_frees_its_blocks_in_the_next_step(serve):
    served = await serve()
    leaver, stayer = await begin(served), await begin(served)
    assert served.driver.occupancy().kv_blocks_used >= 20
    await leaver.close()
    await served.until(lambda: served.told.requests != [])
    (request,) = served.told.requests
    assert (request.finish_reason, request.output_tokens > 0) == ("abort", True)
    await served.until(lambda: served.told.steps[-1].started_ns >= request.finished_ns)
    following = next(step for step in served.told.steps if step.started_ns >= request.finished_ns)
    before = next(step for step in reversed(served.told.steps) if step.started_ns < request.finished_ns)
    assert (before.running, following.running) == (2, 1)
    assert before.kv_blocks_used - following.kv_blocks_used >= 10
    await stayer.close()
    await served.until(lambda: served.driver.occupancy().running == 0)
    assert served.driver.occupancy().kv_blocks_used == 0


async def test_a_client_that_hangs_up_in_the_queue_never_rides(serve):
    served = await serve(max_num_seqs=1)
    rider = await begin(served)
    waiting = asyncio.create_task(served.client().completions.create(model="tiny", prompt="a", max_tokens=5))
    await served.until(lambda: served.driver.occupancy().waiting == 1)
    waiting.cancel()
    await served.until(lambda: served.driver.occupancy().waiting == 0)
    (request,) = served.told.requests
    assert (request.finish_reason, request.scheduled_ns, request.output_tokens) == ("abort", None, 0)
    await rider.close()


async def test_a_client_that_hangs_up_takes_all_its_choices_along(serve):
    served = await serve(max_num_seqs=4)
    stream = await begin(served, n=6)
    await stream.close()
    await served.until(lambda: len(served.told.requests) == 6)
    assert {request.finish_reason for request in served.told.requests} == {"abort"}
    assert served.driver.occupancy()[:3] == (0, 0, 0)


async def test_no_token_comes_before_the_step_model_says(serve):
    served = await serve()
    sent_ns = time.monotonic_ns()
    stream = await served.client().completions.create(model="tiny", prompt="a", max_tokens=60, stream=True)
    came_ns = [time.monotonic_ns() - sent_ns async for _ in stream]
    (request,) = served.told.requests
    steps = [step for step in served.told.steps if step.output_tokens]
    assert len(came_ns) == len(steps) == 60
    ends_ns = [step.started_ns + step.duration_ns - request.arrived_ns for step in steps]
    assert all(came >= due for came, due in zip(came_ns, ends_ns, strict=True))


async def test_steps_follow_one_another_without_a_gap_while_somebody_rides(serve):
    served = await serve()
    await (await begin(served, tokens=2)).close()
    await served.client().completions.create(model="tiny", prompt="a", max_tokens=50)
    ride = served.told.steps[-50:]
    assert all(step.started_ns + step.duration_ns == after.started_ns for step, after in pairwise(ride))


async def test_the_clock_of_an_idle_engine_goes_on(serve):
    served = await serve()
    await asyncio.sleep(0.6)
    assert served.told.runs[-1].heartbeat_ns >= served.told.runs[0].started_ns + 400_000_000
    assert served.driver.occupancy() == Occupancy(0, 0, 0, served.driver.occupancy().kv_blocks_total)


async def test_a_driver_who_was_held_up_makes_up_for_it(serve):
    served = await serve()
    stream = await begin(served, tokens=400)
    time.sleep(0.1)  # the loop stands still
    behind_ns = served.driver.now_ns - (served.told.steps[-1].started_ns + served.told.steps[-1].duration_ns)
    assert behind_ns > 0
    assert len([event async for event in stream]) == 399
    (request,) = served.told.requests
    model_ns = sum(step.duration_ns for step in served.told.steps)
    assert request.finished_ns - request.scheduled_ns == model_ns


async def test_a_request_rides_from_when_it_came_however_late_the_process_wakes(serve):
    served = await serve()
    came_ns = served.driver.now_ns
    served.driver.submit([Arrival("one", "ann", "standard", came_ns, 10, 3, 3)])
    time.sleep(0.05)  # the loop stands still
    await served.until(lambda: served.told.requests != [])
    assert [request.scheduled_ns for request in served.told.requests] == [came_ns]
    assert served.told.steps[0].started_ns == came_ns


async def test_an_answer_that_is_over_before_its_stream_begins_is_streamed_whole(unserved):
    driver = unserved(lambda: None)
    call = driver.submit([Arrival("one", "ann", "standard", driver.now_ns, 10, 20, 20)])
    driving = asyncio.create_task(driver.run())
    while not call.done:
        await asyncio.sleep(0.01)
    answer = Answer("cmpl-1", 0, "tiny", chat=False)
    told = b"".join([piece async for piece in events(call, answer, with_usage=True)])
    assert told.count(b'"text"') == 20
    assert told.endswith(b"data: [DONE]\n\n")
    assert b'"completion_tokens":20' in told
    driving.cancel()


async def test_static_batches_leave_when_their_wait_is_over(serve):
    served = await serve(mode="static", max_num_seqs=4)
    answers = await asyncio.gather(
        *(served.client().completions.create(model="tiny", prompt="a", max_tokens=3) for _ in range(2))
    )
    assert [answer.usage.completion_tokens for answer in answers] == [3, 3]
    first = min(request.arrived_ns for request in served.told.requests)
    assert served.told.steps[0].started_ns - first >= 50_000_000


async def test_a_server_that_stops_ends_every_stream(serve):
    served = await serve()
    stream = await begin(served)
    served.driver.put_off_all()
    events = [event async for event in stream]
    assert events[-1].choices[0].finish_reason == "abort"


async def test_when_the_record_fails_the_driver_stops_and_every_call_ends(unserved):
    def fail() -> None:
        raise OSError("no space left on device")

    driver = unserved(fail)
    call = driver.submit([Arrival("one", "ann", "standard", driver.now_ns, 10, 10**5)])
    with pytest.raises(OSError, match="no space"):
        await driver.run()
    assert call.done
    assert call.rides[0].ended.finish_reason == "abort"
    assert driver.occupancy()[:3] == (0, 0, 0)
