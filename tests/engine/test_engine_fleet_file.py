"""Fleet files: what they say, and what is said when they are wrong."""

from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

from farebox.engine.fleet import Fleet, FleetError, Route
from farebox.roofline import to_units
from farebox.roofline.constants import Constants, Origin, shipped_constants, write_constants

EXAMPLE = Path(__file__).parents[2] / "examples" / "fleet" / "fleet.toml"
ENDPOINT = '[[endpoint]]\nname = "a"\ngpu = "h100"\nmodel = "llama-3-8b"\n'
HOST = 'host = "n"\n'
OTHER = ENDPOINT.replace('"a"', '"b"')


def read(folder: Path, text: str) -> Fleet:
    file = folder / "fleet.toml"
    file.write_text(text)
    return Fleet.from_toml(file)


def test_the_example_says_what_its_comments_say():
    fleet = Fleet.from_toml(EXAMPLE)
    chat, code, night = fleet.endpoints
    assert [chat.engine_id(n) for n in range(chat.replicas)] == ["chat-0", "chat-1", "chat-2"]
    assert (chat.engine.host, chat.engine.gpu_type, chat.engine.max_num_seqs) == ("chat", "h100_sxm", 128)
    assert chat.load_ns == 8_029_995_008  # 16 059 990 016 bytes at 2 GB/s
    assert (code.engine.weights, code.engine.kv_blocks > chat.engine.kv_blocks) == ("fp8", True)
    assert (night.load_ns, night.price, night.currency) == (20 * 10**9, Decimal("0.99"), "USD")
    assert fleet.routes == (Route("night", tier="batch"), Route("code", tenant="code*", prompt_tokens=(1, 6000)))


def test_an_endpoint_may_keep_kv_in_fp8_and_time_its_steps_by_constants_of_its_own(tmp_path):
    own = Constants(replace(shipped_constants("h100_sxm").kernels, step_us=1000.0), Origin("mine"))
    write_constants(tmp_path / "own.toml", "h100_sxm", own)
    more = f'kv_cache_dtype = "fp8"\nconstants = "{tmp_path / "own.toml"}"\n'
    (plain,), (other,) = (read(tmp_path, ENDPOINT + keys).endpoints for keys in ("", more))
    assert other.engine.block_bytes * 2 == plain.engine.block_bytes
    slower = other.engine.step_model.overhead - plain.engine.step_model.overhead
    assert slower == pytest.approx(to_units(1e-3), rel=1e-6)
    with pytest.raises(FleetError, match=r'endpoint "a": constants: .*no constants for a100_sxm'):
        read(tmp_path, ENDPOINT.replace("h100", "a100") + more)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "fleet.toml: no endpoint"),
        ("endpoint = 3", r"endpoint: write each as a table of its own"),
        ("[[endpoint", "fleet.toml: this is not TOML"),
        (ENDPOINT.replace("name", "nome"), 'endpoint 1: name: it is missing'),
        (ENDPOINT.replace("h100", "h1000"), 'fleet.toml: endpoint "a": gpu: unknown GPU "h1000"'),
        (ENDPOINT.replace("8b", "70b"), 'endpoint "a": llama-3-70b does not fit.* use tp 4'),
        (ENDPOINT + "tp = 0", 'endpoint "a": tp 0: a replica needs at least one GPU'),
        (ENDPOINT + "tp = true", 'endpoint "a": tp: True is not a whole number'),
        (ENDPOINT + "replicas = 0", 'endpoint "a": replicas is 0'),
        (ENDPOINT + "max_num_seq = 8", 'endpoint "a": max_num_seq: there is no such key; did you mean max_num_seqs'),
        (ENDPOINT + 'scheduling_policy = "lifo"', "scheduling_policy 'lifo' is not one of fcfs, priority"),
        (ENDPOINT + 'enable_prefix_caching = "yes"', "enable_prefix_caching: 'yes' is neither true nor false"),
        (ENDPOINT + "max_num_seqs = 0", 'endpoint "a": max_num_seqs is 0'),
        (ENDPOINT + 'mode = "static"\nfast_cap = 2', 'endpoint "a": fast_cap needs mode continuous'),
        (ENDPOINT + 'hours = "7-20"', 'endpoint "a": hours: "7-20" is not a window'),
        (ENDPOINT + "min_replicas = 1", 'endpoint "a": min_replicas: without hours'),
        (ENDPOINT + 'until = "2026-01-01"', 'endpoint "a": until: write a date as'),
        (ENDPOINT + "from = 2026-02-01\nuntil = 2026-01-01", 'endpoint "a": until must be later than from'),
        (ENDPOINT + "price = 4.29", 'endpoint "a": price: write it as text, as price = "4.29"'),
        (ENDPOINT + 'price = "-1"', 'endpoint "a": price: "-1" is not a price'),
        (ENDPOINT + "load_seconds = -1", 'endpoint "a": load_seconds: -1 is not a number of seconds'),
        (ENDPOINT * 2, 'two endpoints are called "a"'),
        ('default = "c"\n' + ENDPOINT, 'default: there is no endpoint "c"; there are: a'),
        (ENDPOINT + '[[route]]\ntier = "fast"\nendpoint = "c"', 'route 1: endpoint: there is no endpoint "c"'),
        (ENDPOINT + '[[route]]\ntier = "quick"\nendpoint = "a"', 'route 1: tier: "quick" is not one of'),
        (ENDPOINT + '[[route]]\nprompt_tokens = "<1"\nendpoint = "a"', 'prompt_tokens: "<1" fits no prompt'),
        (ENDPOINT + '[[route]]\nprompt_tokens = "few"\nendpoint = "a"', "write <500, >=500 or 500-2000"),
        (ENDPOINT + OTHER, 'endpoint "b" gets no requests'),
        (ENDPOINT + HOST + 'price = "1"\n' + OTHER + HOST + '[[route]]\nendpoint = "b"', "a host has one price"),
    ],
)  # fmt: skip
def test_a_mistake_is_told_with_file_section_and_key(tmp_path, text, message):
    with pytest.raises(FleetError, match=message) as told:
        read(tmp_path, text)
    assert str(told.value).startswith(str(tmp_path / "fleet.toml"))


def test_an_endpoint_caches_prefixes_and_minds_priorities_when_told_to(tmp_path):
    text = ENDPOINT + 'enable_prefix_caching = true\nscheduling_policy = "priority"'
    config = read(tmp_path, text).endpoints[0].engine
    assert (config.enable_prefix_caching, config.scheduling_policy) == (True, "priority")


@pytest.mark.parametrize(
    ("earlier", "later", "covered"),
    [
        ({}, {"tier": "fast"}, True),
        ({"tier": "fast"}, {"tier": "fast", "tenant": "a"}, True),
        ({"tier": "fast"}, {"tenant": "a"}, False),
        ({"tenant": "voice*"}, {"tenant": "voice-agent"}, True),
        ({"tenant": "voice*"}, {"tenant": "voice-*-eu"}, True),
        ({"tenant": "*"}, {}, True),
        ({"tenant": "voice-?"}, {"tenant": "voice-*"}, False),
        ({"tenant": "voice-agent"}, {"tenant": "voice*"}, False),
        ({"prompt_tokens": (1, 499)}, {"prompt_tokens": (100, 200)}, True),
        ({"prompt_tokens": (1, 499)}, {"prompt_tokens": (100, 500)}, False),
        ({"prompt_tokens": (500, None)}, {"prompt_tokens": (500, 900), "tier": "batch"}, True),
    ],
)
def test_a_rule_that_an_earlier_one_covers_is_never_reached(tmp_path, earlier, later, covered):
    endpoint = Fleet.from_toml(EXAMPLE).endpoints[0]
    routes = (Route("chat", **earlier), Route("chat", **later))
    assert routes[0].covers(routes[1]) is covered
    if covered:
        with pytest.raises(FleetError, match="route 2 is never reached: route 1"):
            Fleet((endpoint,), routes)


def test_the_first_rule_that_takes_a_request_decides(kit):
    fleet = Fleet.from_toml(EXAMPLE)
    code = {"tenant": "code-completion", "prompt": 6000}
    assert fleet.endpoint_for(kit.arrival(1, tier="batch", **code)).name == "night"
    assert fleet.endpoint_for(kit.arrival(1, **code)).name == "code"
    assert fleet.endpoint_for(kit.arrival(1, tenant="code-completion", prompt=6001)).name == "chat"
    assert fleet.endpoint_for(kit.arrival(1, tenant="my-code", prompt=1)).name == "chat"


def test_a_price_changes_no_run_and_everything_else_does(tmp_path):
    plain, dear, wider = (read(tmp_path, ENDPOINT + more) for more in ("", 'price = "9"', "replicas = 2"))
    assert plain.run_id(["x"], "a-0", 0) == dear.run_id(["x"], "a-0", 0)
    others = [wider.run_id(["x"], "a-0", 0), plain.run_id(["y"], "a-0", 0), plain.run_id(["x"], "a-0", 1)]
    assert len({plain.run_id(["x"], "a-0", 0), *others}) == 4
