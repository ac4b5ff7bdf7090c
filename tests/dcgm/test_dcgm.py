"""GPUs on a DCGM exporter's page: units, sharers, slices, gaps, and what never counts twice."""

import json

import pytest
from click.testing import CliRunner
from scrape_pages import START, Pages, S, case

from farebox.cli.app import app
from farebox.collector.collect.hardware import DcgmSource
from farebox.collector.collect.scraping import scraped_engine
from farebox.collector.config.sources import DcgmConfig, ScrapeConfig
from farebox.collector.dcgm.watch import DcgmWatch
from farebox.collector.scrape.fetch import FetchError, HttpFetcher
from farebox.collector.scrape.page import read_page
from farebox.collector.spooled.engines import Engines
from farebox.events import GPU_SAMPLES
from farebox.storage.store import create_store

HEAD = 'gpu="{0}",UUID="GPU-{0}",modelName="NVIDIA H100",Hostname="node-7"'
ALL = {
    "GPU_UTIL": 80,
    "FB_USED": 1024,
    "FB_FREE": 80_000,
    "FB_RESERVED": 536,
    "POWER_USAGE": 350.125,
    "ENFORCED_POWER_LIMIT": 700,
    "TOTAL_ENERGY_CONSUMPTION": 5_000_000_000,
    "SM_CLOCK": 1980,
    "GPU_TEMP": 61,
}


def page(*, device: int = 0, more: str = "", **values: float | str) -> str:
    """The page of one device."""
    labels = HEAD.format(device) + more
    return "".join(f"DCGM_FI_DEV_{name}{{{labels}}} {value}\n" for name, value in values.items())


def see(text: str, watch: DcgmWatch | None = None, second: float = 0):
    return (watch or DcgmWatch("h")).see(read_page(text), START + round(second * S))


def test_a_device_is_read_in_the_units_of_records():
    poll = see(page(**ALL))
    [sample] = poll.samples
    assert (poll.state, poll.why) == ("up", None)
    assert sample[:7] == ("node-7", "GPU-0", START, 0, "NVIDIA H100", None, "ok")
    assert (sample.util_pct, sample.mem_used, sample.mem_total) == (80, 2**30, (1024 + 80_000 + 536) * 2**20)
    assert (sample.power_mw, sample.power_limit_mw, sample.sm_clock_mhz) == (350_125, 700_000, 1980)
    assert (sample.temperature_c, sample.energy_mj, sample.energy_basis) == (61, 0, "counter")
    assert set(json.loads(sample.missing)) == {"active_ppm", "power_scope"}


def test_a_shared_device_counts_once():  # D10
    poll = see(case("D10.prom"))
    [sample] = poll.samples
    assert (sample.gpu_uuid, sample.power_mw, sample.active_ppm, sample.util_pct) == ("GPU-a", 210_000, 714_000, 71)
    assert sample.shared_by == ("p1", "p2", "p3")
    assert "shared by p1, p2, p3" in poll.why and "device-level value" in poll.why and poll.state == "up"
    assert "DCGM_FI_DEV_FB_USED" in json.loads(sample.missing)["mem_used"]


def test_slices_have_memory_and_load_and_their_device_the_rest():
    slices = "".join(page(more=f',GPU_I_ID="{n}",GPU_I_PROFILE="1g.10gb"', FB_USED=n, POWER_USAGE=300) for n in (1, 2))
    whole, one, two = see(slices + page(FB_USED=3)).samples
    assert (whole.gpu_uuid, whole.power_mw, whole.mem_used) == ("GPU-0", 300_000, 3 * 2**20)
    assert [(s.gpu_uuid, s.parent_uuid, s.name, s.mem_used // 2**20, s.power_mw) for s in (one, two)] == [
        ("GPU-0/1", "GPU-0", "1g.10gb", 1, None),
        ("GPU-0/2", "GPU-0", "1g.10gb", 2, None),
    ]
    assert whole.shared_by is None


@pytest.mark.parametrize("value", ["9223372036854775794", "2147483634", "140737488355328", "NaN", "-1"])
def test_a_number_that_stands_for_no_value_is_missing(value):
    [sample] = see(page(**ALL | {"SM_CLOCK": value, "POWER_USAGE": value})).samples
    assert sample.sm_clock_mhz is None and sample.power_mw is None and sample.state == "ok"
    assert "not supported" in json.loads(sample.missing)["sm_clock_mhz"]


def test_copies_that_disagree_are_not_believed():
    text = page(more=',pod="a"', POWER_USAGE=200) + page(more=',pod="b"', POWER_USAGE=210)
    [sample] = see(text + page(GPU_TEMP=50)).samples
    assert sample.power_mw is None and "several values" in json.loads(sample.missing)["power_mw"]


def test_energy_follows_a_page_that_is_renewed_less_often_than_it_is_read():
    watch, told = DcgmWatch("h"), []
    for second in range(0, 125, 5):
        joules = 700 * (second // 30) * 30  # the exporter looks every 30 s, at its power limit
        text = page(**ALL | {"TOTAL_ENERGY_CONSUMPTION": 5_000_000_000 + 1000 * joules})
        told.append(see(text, watch, second).samples[0].energy_mj)
    assert told[0] == told[5] == 0 and told[-1] == 700 * 120 * 1000
    assert None not in told and told == sorted(told)


def test_a_device_that_is_gone_is_lost_and_a_slice_that_is_gone_was_cut_anew():
    watch = DcgmWatch("h")
    see(page(**ALL) + page(device=1, **ALL) + page(more=',GPU_I_ID="1"', FB_USED=1), watch)
    poll = see(page(**ALL), watch, 5)
    assert [(s.gpu_uuid, s.state, s.power_mw) for s in poll.samples] == [
        ("GPU-0", "ok", 350_125),
        ("GPU-1", "lost", None),
    ]
    assert poll.state == "degraded" and "does not list it any more" in poll.why


def test_a_captured_page(shared):
    poll = see((shared / "data/pages/dcgm-exporter_netdata-fixture.prom").read_text())
    whole, part = poll.samples
    assert (whole.host, whole.util_pct, whole.mem_used, whole.power_mw) == ("host1", 80, 2**30, None)
    assert (part.parent_uuid, part.name, part.util_pct) == ("GPU-aaa", "1g.10gb", 60)


@pytest.fixture
def store(tmp_path):
    with create_store(tmp_path / "s") as made:
        yield made


def stored(store):
    return GPU_SAMPLES.from_arrow(store.read(GPU_SAMPLES))


def test_what_two_sources_see_is_recorded_once_and_the_host_may_be_named(store):
    engines, text = Engines(), page(**ALL)
    first, second = (
        DcgmSource(DcgmConfig(kind="dcgm", url=url, host=host), store, engines, Pages(text, text))
        for url, host in (("http://a:9400", "gpu-7"), ("http://b:9400", None))
    )
    first.look(), second.look()
    assert [sample.host for sample in stored(store)] == ["gpu-7"]
    first.close(), second.look()
    assert [sample.host for sample in stored(store)] == ["gpu-7", "node-7"]


def test_a_page_that_cannot_be_read_raises_and_energy_is_not_made_up(store):
    config, texts = DcgmConfig(kind="dcgm", url="http://a:9400"), [page(POWER_USAGE=300), page(POWER_USAGE=300)]
    source = DcgmSource(config, store, Engines(), Pages(texts[0], FetchError("no"), texts[1]))
    source.look()
    with pytest.raises(FetchError):
        source.look()
    source.look()
    assert [(s.energy_mj, s.energy_basis) for s in stored(store)] == [(0, "power"), (0, "power")]


def test_a_scrape_source_that_finds_gpus_reads_them(store, monkeypatch):
    pages = Pages(*[page(**ALL)] * 3)
    monkeypatch.setattr(HttpFetcher, "get", lambda self, path: pages.get(path))
    source = scraped_engine(ScrapeConfig(kind="scrape", url="http://a:9400"), store, Engines())
    assert [source.look().state, source.look().state] == ["up", "up"]
    source.close()
    assert len(stored(store)) == 2 and store.runs() == []


def test_readings_are_shown_with_who_shares_the_device(store, monkeypatch):
    config = DcgmConfig(kind="dcgm", url="http://a:9400")
    DcgmSource(config, store, Engines(), Pages(case("D10.prom"))).look()
    done = CliRunner().invoke(app, ["gpu", "--last", str(store.path)])
    assert "71.4 %" in done.stdout and "210 W" in done.stdout, done.output
