"""What GPUs do to those who watch them: the cases, through the real binding."""

import json

import pynvml
from nvml_script import case

GIB = 2**30
FINE = case("A18")["devices"][0]


def missing(sample):
    return json.loads(sample.missing or "{}")


def test_a01_unified_memory_is_the_hosts_and_says_so(watch):
    told = case("A01")
    watch.host(told["host"]["MemTotal_kB"], told["host"]["MemAvailable_kB"])
    poll = watch.poll(told)
    [gpu] = poll.samples
    assert (gpu.state, gpu.util_pct, gpu.power_mw, gpu.temperature_c) == ("ok", 37, 41_250, 55)
    assert (gpu.mem_kind, gpu.mem_used, gpu.mem_total) == ("unified", 73_400_320 * 1024, 125_829_120 * 1024)
    assert (poll.state, poll.why) == ("up", None)
    assert missing(gpu)["power_limit_mw"] == "not supported by this device"


def test_a01_unknown_memory_is_not_made_up(watch):
    [gpu] = watch.poll(case("A01")).samples
    assert (gpu.mem_used, gpu.mem_total, gpu.mem_kind) == (None, None, None)
    assert missing(gpu)["mem_total"] == "not supported by this device"
    watch.host(1000, 10)
    told = case("A01")
    told["devices"][0] |= {"name": "NVIDIA H100 NVL", "uuid": "GPU-other"}
    other = watch.poll(told, 61).samples[-1]
    assert (other.name, other.mem_total) == ("NVIDIA H100 NVL", None)


def test_a02_used_and_total_are_of_one_pool(watch):
    told = case("A02")
    watch.host(told["host"]["MemTotal_kB"], told["host"]["MemAvailable_kB"])
    [gpu] = watch.poll(told).samples
    assert (gpu.mem_used, gpu.mem_total, gpu.mem_kind) == (80 * GIB, 128 * GIB, "unified")


def test_a03_slices_have_their_own_memory_and_no_made_up_load(watch):
    parent, large, small = watch.poll(case("A03")).samples
    assert (parent.parent_uuid, large.parent_uuid, small.parent_uuid) == (None, parent.gpu_uuid, parent.gpu_uuid)
    assert [one.util_pct for one in (parent, large, small)] == [None] * 3
    assert [one.mem_used for one in (parent, large, small)] == [16_106_127_360, 15_032_385_536, 1_073_741_824]
    assert large.name.endswith("MIG 3g.20gb")
    assert parent.power_mw == 250_000
    assert large.power_mw is None and "see its device" in missing(large)["power_mw"]


def test_a04_a_container_with_one_slice_uses_the_slice_and_names_the_missing_right(watch):
    poll = watch.poll(case("A04"))
    parent, piece = poll.samples
    assert parent.mem_used is None and "not permitted" in missing(parent)["mem_used"]
    assert piece.mem_total == 4864 * 2**20
    assert poll.state == "degraded" and "mem_total, mem_used not permitted" in poll.why


def test_a05_one_lost_card_stays_listed_and_the_others_go_on(watch):
    first, *later = watch.all(case("A05")["polls"])
    assert [gpu.state for gpu in first.samples] == ["ok"] * 4
    for poll in later:
        assert [gpu.state for gpu in poll.samples] == ["ok", "ok", "lost", "ok"]
        assert [gpu.util_pct for gpu in poll.samples] == [90, 90, None, 90]
        lost = poll.samples[2]
        assert lost.power_mw is lost.mem_used is lost.energy_mj is None
        assert "fell off the bus" in missing(lost)["util_pct"]
        assert poll.state == "degraded" and "GPU 2" in poll.why


def test_a05_a_card_that_the_driver_lists_no_more_stays_and_comes_back(watch):
    poll = case("A05")["polls"][0]
    watch.poll(poll)
    fewer = poll | {"devices": poll["devices"][:2] + poll["devices"][3:]}
    gone = watch.poll(fewer, 61).samples
    assert {gpu.gpu_uuid[4:8]: gpu.state for gpu in gone} == {"aaaa": "ok", "bbbb": "ok", "cccc": "lost", "dddd": "ok"}
    assert "does not list it" in next(missing(gpu)["util_pct"] for gpu in gone if gpu.state == "lost")
    assert [gpu.state for gpu in watch.poll(poll, 63).samples] == ["ok"] * 4


def test_a_card_that_is_lost_from_the_start_is_named_by_its_number(watch):
    poll = case("A05")["polls"][0]
    poll["devices"][1] = {"handle": {"raise": "GPU_IS_LOST"}}
    found = watch.poll(poll)
    assert len(found.samples) == 3
    assert found.state == "degraded" and found.why.startswith("GPU 1: GPU is lost")


def test_a07_bytes_and_text_are_the_same_device(watch, monkeypatch):
    text = watch.poll(case("A07")).samples
    for name in ("nvmlDeviceGetName", "nvmlDeviceGetUUID"):
        monkeypatch.setattr(pynvml, name, getattr(pynvml, name).__wrapped__)
    assert isinstance(pynvml.nvmlDeviceGetName(pynvml.nvmlDeviceGetHandleByIndex(0)), bytes)
    again = watch.poll(case("A07"), 61).samples
    assert [gpu._replace(at_ns=0, energy_mj=0) for gpu in text] == [gpu._replace(at_ns=0, energy_mj=0) for gpu in again]


def test_a11_energy_from_power_is_marked(watch):
    *_, last = watch.all(case("A11")["polls"])
    assert (last.samples[0].energy_mj, last.samples[0].energy_basis) == (18_600_000, "power")


def test_a11_no_power_and_no_counter_is_no_energy(watch):
    told = {"devices": [FINE | {"energy_mJ": {"raise": "NOT_SUPPORTED"}, "power_mW": {"raise": "NOT_SUPPORTED"}}]}
    for second in (0, 10):
        [gpu] = watch.poll(told, second).samples
        assert (gpu.state, gpu.energy_mj, gpu.energy_basis) == ("ok", None, None)


def with_energy(marks):
    limit = 1000 * case("A12")["power_limit_W"]
    return [m | {"devices": [FINE | {"power_limit_mW": limit, "energy_mJ": m["energy_mJ"]}]} for m in marks]


def test_a12_a_glitch_of_the_counter_is_a_gap(watch):
    found = [poll.samples[0] for poll in watch.all(with_energy(case("A12")["polls"]))]
    assert [gpu.energy_mj for gpu in found] == [0, 300_000, None, 900_000, 1_200_000]
    assert "jumped" in missing(found[2])["energy_mj"]


def test_a12_a_counter_that_starts_anew_is_a_new_base(watch):
    found = [poll.samples[0].energy_mj for poll in watch.all(with_energy(case("A12")["true_reset_variant"]))]
    assert found == [0, 300_000, None, 600_000, 900_000]


def test_a14_a_driver_that_fails_for_good_ends_the_series_and_is_not_hammered(watch, monkeypatch):
    starts = []
    real = pynvml.nvmlInit
    monkeypatch.setattr(pynvml, "nvmlInit", lambda: (starts.append(1), real())[1])
    polls = case("A14")["polls"]
    found = watch.all(polls)
    assert [len(poll.samples) for poll in found] == [1, 1, 0, 0, 0, 0]
    assert [poll.state for poll in found] == ["up", "up", *["down"] * 4]
    assert "restart the container" in found[-1].why
    for second in range(30, 600, 5):
        assert watch.poll(polls[-1], second).samples == []
    assert len(starts) < 15
    back = next(poll for second in range(600, 1000, 10) if (poll := watch.poll(polls[0], second)).samples)
    assert back.state == "up"


def test_a16_one_power_scope_is_chosen_named_and_kept(watch):
    told = case("A16")
    [gpu] = watch.poll(told).samples
    assert (gpu.power_mw, gpu.power_scope) == (410_000, "average")
    del told["devices"][0]["field_values"]["POWER_AVERAGE scope GPU"]
    [gpu] = watch.poll(told, 1).samples
    assert (gpu.power_mw, gpu.power_scope) == (None, None)


def test_a16_a_scope_that_nobody_names_is_not_guessed(watch):
    [gpu] = watch.poll(case("A18")).samples
    assert (gpu.power_mw, gpu.power_scope) == (190_000, None)
    assert "does not say" in missing(gpu)["power_scope"]


def test_a19_full_load_says_nothing_but_load(watch):
    for poll in watch.all(case("A19")["polls"]):
        assert [gpu.util_pct for gpu in poll.samples] == [100, 100]
