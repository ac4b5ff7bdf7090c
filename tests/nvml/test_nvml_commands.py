"""`farebox gpu` and `farebox doctor` where the driver is there, broken or missing."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from nvml_script import case

from farebox.events import CAPACITIES, SOURCE_STATES, Capacity, SourceState
from farebox.storage.live import LiveReader
from farebox.storage.store import create_store, open_store

RATE = ("rates", "add", "s", "--gpu-type", "h100", "--price", "4.29")


def test_a18_full_time_is_not_a_full_gpu(command):
    done = command(case("A18"), "gpu")
    assert done.exit_code == 0
    head, row = done.stdout.splitlines()[:2]
    assert "busy time" in head and "100 %" in row
    assert "27 % of 700 W" in row and "10.0 of 80.0 GiB (12.5 %)" in row
    assert "at 100 % a GPU may still be almost" in " ".join(command({}, "gpu", "--help").stdout.split())


def test_g13_memory_is_reserved_and_no_measure_of_use(command):
    done = command(case("G13"), "gpu")
    head, row = done.stdout.splitlines()[:2]
    assert "memory (reserved)" in head and "73.0 of 80.0 GiB" in row
    assert "says nothing of how much of it is used" in " ".join(command({}, "gpu", "--help").stdout.split())


def test_programs_get_nulls_and_reasons(command):
    found = json.loads(command(case("A03"), "gpu", "--json").stdout)
    assert (found["state"], found["driver"]) == ("up", "580.00")
    assert [gpu["util_pct"] for gpu in found["gpus"]] == [None] * 3
    assert found["gpus"][1]["missing"]["util_pct"] == "not supported by this device"


@pytest.mark.parametrize(
    ("told", "words", "verdict"),
    [
        (case("A06"), "reboot the host", 1),
        ({"init": {"raise": "LIBRARY_NOT_FOUND"}}, "stub of the CUDA toolkit", 0),
        ({"devices": []}, "finds no GPU", 0),
        ({"init": {"raise": "UNKNOWN"}}, "restart the container", 1),
    ],
)
def test_a06_a20_without_nvml_one_plain_sentence(command, told, words, verdict):
    done = command(told, "gpu")
    assert (done.exit_code, done.stdout) == (1, "")
    [sentence] = done.stderr.splitlines()
    assert sentence.startswith("Error: GPUs cannot be read: ") and words in sentence
    assert json.loads(command(told, "gpu", "--json").stdout)["gpus"] == []
    doctor = command(told, "doctor")
    assert doctor.exit_code == verdict and words in doctor.stdout and doctor.stderr == ""


def test_a20_no_library_at_all(environment, tmp_path):
    farebox = [sys.executable, "-m", "farebox.cli", "gpu"]
    done = subprocess.run(farebox, env=environment(None), capture_output=True, text=True, cwd=tmp_path, check=False)
    if "NVML library" not in done.stderr:
        pytest.skip("this host has NVIDIA's own library")
    assert (done.returncode, done.stdout) == (1, "")
    assert len(done.stderr.splitlines()) == 1


def test_a_watch_records_until_it_is_told_to_stop(command, environment, tmp_path):
    farebox = [sys.executable, "-m", "farebox.cli", "gpu", "--watch", "s"]
    env = environment(case("A18"))
    with subprocess.Popen(farebox, cwd=tmp_path, env=env, stderr=subprocess.PIPE, text=True) as watching:
        assert "once a second" in watching.stderr.readline()
        assert watching.stderr.readline().endswith(": up\n")
        time.sleep(1.2)
        watching.send_signal(signal.SIGINT)
        assert watching.wait(60) == 0
    with LiveReader(tmp_path / "s") as live:
        first, second, *_ = live.gpu_samples()[0]
        assert second.at_ns - first.at_ns > 0.9e9
        assert (first.energy_mj, first.energy_basis) == (0, "counter")
    last = command({}, "gpu", "--last", "s")
    assert last.exit_code == 0 and "NVIDIA H100" in last.stdout


def checks(command, *arguments, told=None):
    done = command(told or case("A18"), "doctor", *arguments, "--json")
    found = {check["name"]: check for check in json.loads(done.stdout)}
    assert done.exit_code == any(check["level"] == "bad" for check in found.values())
    return found


def test_the_doctor_names_a_lost_card_and_what_a_card_does_not_tell(command):
    told = case("A05")["polls"][1]
    found = checks(command, told=told)
    assert found["NVML"]["level"] == "ok"
    assert found["GPU 2"]["level"] == "bad" and "is lost" in found["GPU 2"]["says"]
    assert found["GPU 1"]["level"] == "note" and "sm_clock_mhz" in found["GPU 1"]["says"]


def test_the_doctor_looks_at_a_store(command, tmp_path):
    assert checks(command, "nowhere")["store"]["level"] == "bad"
    with create_store(tmp_path / "s") as store:
        store.put(SOURCE_STATES, SourceState("vllm", "vllm", "up", 1, 2, None))
        store.put(SOURCE_STATES, SourceState("vllm", "vllm", "down", 3, 4, "connection refused"))
        found = checks(command, "s")
        assert str(os.getpid()) in found["writer"]["says"]
    found = checks(command, "s")
    assert found["source vllm"]["says"] == "down since 1970-01-01 00:00Z: connection refused"
    assert found["source vllm"]["level"] == "bad"
    assert (found["writer"]["says"], found["log"]["level"]) == ("nobody records into it now", "ok")
    assert found["rates"]["level"] == found["capacity"]["level"] == "note"


def test_the_doctor_misses_rates_and_declarations_of_what_ran(command, tmp_path):
    run = ("run", "--trace", "synthetic:8", "--limit", "20", "--gpu", "h100", "--model", "llama-3-8b", "--store", "s")
    assert command({}, *run).exit_code == 0
    found = checks(command, "s")
    assert found["rates"]["level"] == "bad" and "h100" in found["rates"]["says"]
    assert command({}, *RATE).exit_code == 0
    with open_store(tmp_path / "s") as store:
        store.put(CAPACITIES, Capacity("elsewhere", "h100", 1, 0, None, ""))
    found = checks(command, "s")
    assert found["rates"]["level"] == "ok"
    assert found["capacity"]["level"] == "note" and "not declared" in found["capacity"]["says"]
