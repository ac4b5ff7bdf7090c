"""Recordings are read exactly, and refused where they cannot be understood."""

import json

import pytest

from farebox.calibration.engine_args import read_engine_args
from farebox.calibration.errors import RecordingError
from farebox.calibration.recorded import read_recording
from farebox.calibration.setup import config_of, replica_of
from farebox.errors import InputError

ROW = {
    "request_id": "a", "input_toks": 40, "output_toks": 3, "arrival_time": 1787267980.0827403,
    "queued_ts": 27536.660701067, "scheduled_ts": 27536.660721646, "first_token_ts": 27537.350135653,
    "last_token_ts": 27554.231018618,
}  # fmt: skip


def write(path, *rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_both_clocks_meet_where_the_quickest_request_is_queued(tmp_path):
    later = ROW | {"request_id": "b", "arrival_time": 1787267980.3478317}
    later |= {"queued_ts": 27537.047603549, "scheduled_ts": 27537.047613531}
    ids = write(tmp_path / "ids.jsonl", {"request_id": "b", "block_hash_ids": [7, 8]})
    first, second = read_recording(write(tmp_path / "r.jsonl", later, ROW), ids).requests
    assert first.arrival.request_id == "a"
    assert first.arrival.arrived_ns == first.queued_ns == 1_787_267_980_082_740_300
    assert first.scheduled_ns - first.queued_ns == 20_579
    assert first.ttft_ns == 689_434_586
    assert first.decode_ns == 16_880_882_965
    assert second.queued_ns - second.arrival.arrived_ns == 386_902_482 - 265_091_400
    assert (first.arrival.prefix_ids, second.arrival.prefix_ids) == (None, (7, 8))


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"queued_ts": None}, "queued_ts is not a number"),
        ({"input_toks": 0}, "input_toks must be"),
        ({"output_toks": 2.5}, "output_toks must be"),
        ({"first_token_ts": 1.0}, "not in order"),
        ({"arrival_time": 1e12}, "no time between 1970 and 2200"),
    ],
)
def test_a_bad_row_is_refused_with_its_line(tmp_path, change, complaint):
    path = write(tmp_path / "r.jsonl", ROW, ROW | {"request_id": "b"} | change)
    with pytest.raises(RecordingError, match=complaint):
        read_recording(path)


def test_requests_need_names_of_their_own(tmp_path):
    with pytest.raises(RecordingError, match="same request_id"):
        read_recording(write(tmp_path / "r.jsonl", ROW, ROW))


@pytest.mark.parametrize("text", ["", "[1]\n", "{\n", '{"t": \xff}'])
def test_what_is_no_recording_is_refused(tmp_path, text):
    path = tmp_path / "r.jsonl"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(RecordingError):
        read_recording(path)


def test_engine_arguments_are_found_in_their_groups(kit, tmp_path):
    path = tmp_path / "meta.json"
    path.write_text(json.dumps(kit.args | {"resolved_config": {"scheduler_config": {"async_scheduling": False}}}))
    args = read_engine_args(path)
    assert (args.model, args.device_names) == ("meta-llama/Llama-3.1-8B", ("NVIDIA GeForce RTX 4090",))
    assert (args.max_num_seqs, args.max_num_batched_tokens, args.num_gpu_blocks) == (24, 1024, 700)
    assert not args.async_scheduling
    config = config_of(args, replica_of(args), cached=True)
    assert (config.usable_blocks, config.prefix_block_tokens, config.enable_prefix_caching) == (699, 16, True)


def test_a_cluster_description_fills_in_what_the_arguments_do_not_say(tmp_path):
    args = tmp_path / "args.json"
    args.write_text(json.dumps({"tensor-parallel-size": 2, "max-num-seqs": 128}))
    cluster = tmp_path / "config.json"
    node = {"instances": [{"model_name": "Qwen/Qwen3-32B", "hardware": "RTXPRO6000", "tp_size": 4}]}
    cluster.write_text(json.dumps({"nodes": [node]}))
    replica = replica_of(read_engine_args(args, cluster))
    assert (replica.gpu.name, replica.model.name, replica.tp) == ("rtx_pro_6000", "qwen3-32b", 2)


@pytest.mark.parametrize(
    ("args", "complaint"),
    [
        ({"model": "llama-3-8b"}, "--gpu"),
        ({"device_name": "h100"}, "--model"),
        ({"device_name": "h100", "model": "llama-3-8b", "data_parallel_size": 2}, "share no experts"),
    ],
)
def test_what_nobody_says_is_asked_for(tmp_path, args, complaint):
    path = tmp_path / "args.json"
    path.write_text(json.dumps(args))
    with pytest.raises(InputError, match=complaint):
        replica_of(read_engine_args(path))


def test_a_data_parallel_rank_holds_its_part_of_the_experts(tmp_path):
    path = tmp_path / "args.json"
    named = {"model": "Qwen/Qwen3-30B-A3B", "hardware": "RTXPRO6000", "data_parallel_size": 2}
    path.write_text(json.dumps(named | {"device_name": "some new card"}))
    replica = replica_of(read_engine_args(path))
    experts = replica.model.experts
    assert (replica.gpu.name, replica.tp, experts.count, experts.chosen) == ("rtx_pro_6000", 1, 64, 8)


@pytest.mark.parametrize("args", [{"quantization": "magic"}, {"max_num_seqs": 0}, {"block_size": "16"}])
def test_arguments_that_no_engine_runs_with_are_refused(tmp_path, args):
    path = tmp_path / "args.json"
    path.write_text(json.dumps(args))
    with pytest.raises(RecordingError):
        read_engine_args(path)
