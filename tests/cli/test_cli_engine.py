"""`farebox run`: prefix caching, priorities and speculation, as a user asks for them."""

import json

import pytest


@pytest.fixture
def conversations(tmp_path):
    """Twenty turns of two conversations: each prompt is the one before and a block more."""
    lines = [
        {"timestamp": 400 * turn, "input_length": 512 * (turn // 2 + 2), "output_length": 20,
         "hash_ids": [turn % 2, *range(2 + turn % 2, 2 * (turn // 2 + 2), 2)]}
        for turn in range(20)
    ]  # fmt: skip
    path = tmp_path / "trace.jsonl"
    path.write_text("\n".join(json.dumps(line) for line in lines))
    return f"mooncake:{path}"


def summary(farebox, *arguments):
    return json.loads(farebox("run", *arguments, "--json").stdout)


def test_traces_with_prefix_ids_hit_the_cache_unless_told_not_to(inside, conversations):
    cached = summary(inside, "--trace", conversations, "--store", "cached")
    plain = summary(inside, "--trace", conversations, "--no-enable-prefix-caching", "--store", "plain")
    assert cached["prompt_tokens"] == plain["prompt_tokens"] == sum(512 * (turn // 2 + 2) for turn in range(20))
    assert (cached["cached_tokens"], plain["cached_tokens"]) == (sum(512 * (turn // 2 + 1) for turn in range(2, 20)), 0)


def test_speculation_yields_the_same_tokens_in_fewer_steps(inside, small_trace):
    trace = f"azure:{small_trace}"
    plain = summary(inside, "--trace", trace, "--store", "plain")
    drafted = summary(
        inside, "--trace", trace, "--num-speculative-tokens", "3", "--acceptance-rate", "0.8", "--store", "drafted"
    )
    assert drafted["output_tokens"] == plain["output_tokens"]
    assert drafted["steps"] < plain["steps"]


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["--draft-model", "llama-3-8b"], "--draft-model drafts nothing without --num-speculative-tokens N"),
        (["--scheduling-policy", "random"], "'random' is not one of 'fcfs', 'priority'"),
        (["--acceptance-rate", "1.5"], "1.5 is not in the range 0<=x<=1"),
    ],
)
def test_what_cannot_be_meant_is_refused(inside, arguments, words):
    done = inside("run", "--trace", "synthetic", *arguments, check=2)
    assert words in " ".join(done.stderr.split())
