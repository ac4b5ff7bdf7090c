"""What an engine is called and says of itself."""

import socket
import sys
from types import SimpleNamespace as Of

import pytest
from farebox_vllm.clock import Clock
from farebox_vllm.run import describe_run, name_run
from farebox_vllm.settings import read_settings

HOST = socket.gethostname()


def scheduler(served="llama", *, size=1, rank=0, world=1, **model):
    parallel = Of(data_parallel_size=size, data_parallel_index=rank, data_parallel_rank=0, world_size=world)
    about = Of(model="meta/Llama-3", served_model_name=served, quantization=None, dtype="torch.bfloat16")
    about.__dict__.update(model)
    seats = Of(max_num_seqs=8, max_num_batched_tokens=2048)
    return Of(vllm_config=Of(model_config=about, parallel_config=parallel, scheduler_config=seats))


@pytest.fixture
def named(monkeypatch):
    monkeypatch.setitem(sys.modules, "vllm.platforms", None)

    def name(of, **environment):
        for variable in ("FAREBOX_ENGINE", "FAREBOX_MODEL", "CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"):
            monkeypatch.delenv(variable, raising=False)
        for variable, value in environment.items():
            monkeypatch.setenv(variable, value)
        return name_run(of, read_settings())

    return name


def test_an_engine_is_named_by_the_operator_or_by_host_model_and_devices(named):
    assert named(scheduler(), FAREBOX_ENGINE="prod-1").engine_id == "prod-1"
    assert named(scheduler()).engine_id == f"{HOST}.llama"
    assert named(scheduler(None)).engine_id == f"{HOST}.Llama-3"
    assert named(scheduler(), CUDA_VISIBLE_DEVICES="2,3").engine_id == f"{HOST}.llama.gpu2-3"


def test_data_parallel_ranks_are_engines_of_their_own(named):
    """vLLM tells ranks of a mixture of experts their number; those of a dense model believe that they are alone."""
    experts = [named(scheduler(size=2, rank=rank), FAREBOX_ENGINE="e").engine_id for rank in (0, 1)]
    dense = [named(scheduler(size=1, rank=rank), FAREBOX_ENGINE="e").engine_id for rank in (0, 1)]
    assert (experts, dense) == (["e.dp0", "e.dp1"], ["e", "e.dp1"])


def test_the_model_is_the_served_name_unless_the_operator_knows_better(named):
    assert named(scheduler(["chat", "llama"])).model == "chat"
    assert named(scheduler(None)).model == "meta/Llama-3"
    assert named(scheduler("chat"), FAREBOX_MODEL="llama-3-8b").model == "llama-3-8b"


def test_runs_do_not_share_a_name(named):
    assert len({named(scheduler()).run_id for _ in range(50)}) == 50


@pytest.mark.parametrize(
    ("model", "weights"),
    [
        ({}, "bf16"),
        ({"dtype": "torch.float16"}, "bf16"),
        ({"quantization": "fp8"}, "fp8"),
        ({"quantization": "modelopt_fp8"}, "fp8"),
        ({"quantization": "awq_marlin"}, "int4"),
        ({"quantization": "a method of tomorrow"}, None),
    ],
)
def test_what_vllm_does_not_tell_is_left_out(named, model, weights):
    """A stub without KV cache and platform: everything else is still told."""
    of = scheduler(world=4, **model)
    run = describe_run(of, named(of), Clock(), 1_000, 5_000)
    assert run.get("weights") == weights
    assert (run["gpus"], run["load_ns"], run["max_num_seqs"]) == (4, 4_000, 8)
    assert not {"kv_blocks", "block_bytes", "gpu_type"} & set(run)
