"""OpenAI's own client against the server: shapes, lengths, counts and errors."""

import asyncio

import pytest
from openai import APIStatusError

from farebox.engine.server.tokens import filler

HELLO = [{"role": "user", "content": "hello"}]


async def test_a_completion_has_exactly_the_tokens_asked_for(serve):
    served = await serve()
    answer = await served.client().completions.create(model="tiny", prompt="Who pays for the bus?", max_tokens=40)
    assert (answer.model, answer.object, answer.choices[0].finish_reason) == ("tiny", "text_completion", "length")
    assert answer.choices[0].text == filler(40)
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens, answer.usage.total_tokens) == (6, 40, 46)
    (request,) = served.told.requests
    assert (request.prompt_tokens, request.output_tokens, request.max_tokens) == (6, 40, 40)
    assert (request.tenant_id, request.tier) == ("anonymous", "standard")


async def test_a_chat_streams_one_event_per_token_and_its_usage_when_asked(serve):
    served = await serve()
    stream = await served.client().chat.completions.create(
        model="tiny", messages=HELLO, max_completion_tokens=7, stream=True, stream_options={"include_usage": True}
    )
    first, *middle, last, closing = [event async for event in stream]
    assert (first.choices[0].delta.role, first.choices[0].delta.content) == ("assistant", "")
    assert "".join(event.choices[0].delta.content for event in (*middle, last)) == filler(7)
    assert len(middle) == 6
    assert {event.choices[0].finish_reason for event in middle} == {None}
    assert last.choices[0].finish_reason == "length"
    assert (closing.choices, closing.usage.completion_tokens) == ([], 7)
    assert len({event.id for event in (first, *middle, last, closing)}) == 1


async def test_a_stream_tells_no_usage_unless_asked(serve):
    served = await serve()
    stream = await served.client().completions.create(model="tiny", prompt=[5, 6, 7], max_tokens=3, stream=True)
    events = [event async for event in stream]
    assert [event.choices[0].text for event in events] == ["The ", "bus ", "ran "]
    assert all(event.usage is None for event in events)


async def test_choices_of_several_prompts_are_numbered_and_each_prompt_counts_once(serve):
    served = await serve()
    prompts = [[1, 2, 3], [4, 5, 6, 7]]
    answer = await served.client().completions.create(model="tiny", prompt=prompts, n=3, max_tokens=2)
    assert [choice.index for choice in answer.choices] == list(range(6))
    assert (answer.usage.prompt_tokens, answer.usage.completion_tokens) == (7, 12)
    assert sorted(request.prompt_tokens for request in served.told.requests) == [3, 3, 3, 4, 4, 4]
    stream = await served.client().completions.create(model="tiny", prompt=prompts, max_tokens=2, stream=True)
    seen = [(event.choices[0].index, event.choices[0].finish_reason) async for event in stream]
    assert sorted(seen, key=lambda pair: pair[0]) == [(0, None), (0, "length"), (1, None), (1, "length")]


async def test_a_chat_without_a_limit_ends_by_itself(serve):
    served = await serve(natural_tokens=11)
    answer = await served.client().chat.completions.create(model="tiny", messages=HELLO)
    assert (answer.usage.completion_tokens, answer.choices[0].finish_reason) == (11, "stop")
    assert served.told.requests[0].max_tokens is None


async def test_the_same_tokens_come_whether_streamed_or_not_for_many_at_once(serve):
    served = await serve(max_num_seqs=8)
    client = served.client()

    async def streamed(tokens: int) -> int:
        stream = await client.completions.create(model="tiny", prompt="x" * 50, max_tokens=tokens, stream=True)
        return len([event async for event in stream])

    counts = await asyncio.gather(*(streamed(tokens) for tokens in range(1, 33)))
    assert counts == list(range(1, 33))
    assert sorted(request.output_tokens for request in served.told.requests) == counts


async def test_models_are_listed_with_their_length(serve):
    served = await serve(model_names=("tiny", "also-tiny"))
    models = [model async for model in served.client().models.list()]
    assert [(model.id, model.max_model_len) for model in models] == [("tiny", 4096), ("also-tiny", 4096)]
    answer = await served.client().completions.create(model="also-tiny", prompt="a", max_tokens=1)
    assert answer.model == "also-tiny"


REFUSALS = {
    "unknown model": ({"model": "other", "prompt": "a"}, 404, "model"),
    "prompt as long as the context": ({"model": "tiny", "prompt": [1] * 4096, "max_tokens": 1}, 400, "input_tokens"),
    "limit beyond the context": ({"model": "tiny", "prompt": [1] * 4000, "max_tokens": 97}, 400, "max_tokens"),
    "no tokens": ({"model": "tiny", "prompt": "a", "max_tokens": 0}, 400, "max_tokens"),
    "empty prompt": ({"model": "tiny", "prompt": ""}, 400, "prompt"),
    "no prompt": ({"model": "tiny"}, 400, "prompt"),
    "no choices": ({"model": "tiny", "prompt": "a", "n": 0}, 400, "n"),
    "too many choices": ({"model": "tiny", "prompt": ["a"] * 100, "n": 100}, 400, "n"),
    "logprobs": ({"model": "tiny", "prompt": "a", "logprobs": 2}, 400, "logprobs"),
    "echo": ({"model": "tiny", "prompt": "a", "echo": True}, 400, "echo"),
}


@pytest.mark.parametrize("case", REFUSALS)
async def test_what_cannot_be_served_is_refused_in_the_shape_of_openai(serve, case):
    body, status, param = REFUSALS[case]
    served = await serve()
    told, answer = await served.raw("POST", "/v1/completions", body)
    assert (told, answer["error"]["code"]) == (status, status)
    assert answer["error"]["param"].split(".")[0] == param
    assert set(answer["error"]) == {"message", "type", "param", "code"}
    assert served.told.requests == []


async def test_the_context_may_be_filled_to_the_last_token(serve):
    served = await serve()
    answer = await served.client().completions.create(model="tiny", prompt=[1] * 4000, max_tokens=96)
    assert answer.usage.total_tokens == 4096


async def test_bad_requests_are_told_apart(serve):
    served = await serve(max_body_bytes=1000)
    post = ("POST", "/v1/completions")
    assert (await served.raw(*post, b"{not json"))[0] == 400
    assert (await served.raw(*post, b"[" * 500))[0] == 400
    assert (await served.raw(*post, {"model": "tiny", "prompt": "a" * 2000}))[0] == 413
    assert (await served.raw(*post, {"model": "tiny", "prompt": "a"}, Content_Type="text/plain"))[0] == 415
    assert (await served.raw(*post, b"", X_Long="a" * 40_000))[0] in (400, 431)
    assert (await served.raw("GET", "/v1/completions"))[0] == 405
    status, answer = await served.raw("GET", "/v1/nothing")
    assert (status, answer["error"]["code"]) == (404, 404)
    image = [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]
    assert (await served.raw("POST", "/v1/chat/completions", {"model": "tiny", "messages": image}))[0] == 400
    assert (await served.raw("GET", "/health"))[0] == 200
    assert (await served.raw("GET", "/version"))[1]["version"].startswith("farebox-")


async def test_a_full_queue_refuses_with_429(serve):
    served = await serve(max_num_seqs=1, max_num_queued_reqs=2)
    client = served.client()
    rider = await client.completions.create(model="tiny", prompt="a", max_tokens=3000, stream=True)
    await served.until(lambda: served.driver.occupancy().running == 1)
    with pytest.raises(APIStatusError) as refused:
        await client.completions.create(model="tiny", prompt="a", n=3, max_tokens=1)
    assert refused.value.status_code == 429
    refusals = 'vllm:admission_rejections_total{model_name="tiny",reason="max_num_queued_reqs"} 1.0'
    assert refusals in served.metrics.page().decode()
    await rider.close()
