"""`farebox collect` as its users run it: signals, a second one, a killed one, a changed file, its metrics."""

import signal
import subprocess
import sys
import time
import urllib.request

from collect_process import until
from prometheus_client.parser import text_string_to_metric_families
from spooled_telling import Teller, append_lines, spool

from farebox.events import SOURCE_STATES, STEPS, Rate
from farebox.storage.store import create_store, open_store


def steps(store):
    with open_store(store) as opened:
        return sorted(opened.read(STEPS, ["step_seq"]).column("step_seq").to_pylist())


def test_a_life_of_a_collector(collecting, tmp_path):
    store = tmp_path / "s"
    with create_store(store) as made:
        made.put_rate(Rate("any", "", "USD", "3.6", None, 0, None, "test"))
    teller = Teller(start_ns=time.time_ns() - 10**9, gpus=1)
    first = collecting('store = "s"\nlisten = "127.0.0.1:0"\n')
    said = first.says("metrics on ")
    until((store / "spool").is_dir)
    append_lines(store / "spool" / "w", [teller.run(), *(teller.step() for _ in range(10))])
    until(lambda: len(steps(store)) == 10)

    url = said.split("metrics on ")[1].split()[0]
    page = until(lambda: _samples(url) if _samples(url).get("farebox_gpu_seconds_total") else None)
    spent = sum(page["farebox_gpu_seconds_total"].values())
    assert abs(spent - 0.2) < 1e-9 and abs(sum(page["farebox_cost_total"].values()) - 0.0002) < 1e-9
    assert sum(page["farebox_tokens_total"].values()) > 0 and page["farebox_gpu_seconds_created"]
    with urllib.request.urlopen(urllib.request.Request(url, headers={"Accept": "application/openmetrics-text"})) as got:
        assert "openmetrics" in got.headers["Content-Type"] and got.read().endswith(b"# EOF\n")

    second = subprocess.run(
        [sys.executable, "-m", "farebox.cli", "collect", "-c", str(first.config)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert second.returncode == 1 and f"process {first.child.pid} is recording" in second.stderr

    first.config.write_text('store = "s"\n[[source]]\nkind = "spool"\npath = "more"\n[[source]]\nkind = "spol"\n')
    first.child.send_signal(signal.SIGHUP)
    first.says("going on as before")
    first.config.write_text(
        'store = "s"\n[[source]]\nkind = "spool"\npath = "more"\n[[source]]\nkind = "spool"\npath = "s/spool"\n'
    )
    first.child.send_signal(signal.SIGHUP)
    first.says("2 sources")
    spool(tmp_path / "more" / "v", Teller("other", "r9", start_ns=time.time_ns()).life(3))
    until(lambda: len(steps(store)) == 13)

    append_lines(store / "spool" / "w", [teller.step(), teller.end()])
    assert first.end() == 0
    assert len(steps(store)) == 14
    with open_store(store) as opened:
        assert {state.source.partition(":")[0] for state in opened.settings(SOURCE_STATES)} == {"spool"}


def _samples(url):
    with urllib.request.urlopen(url) as got:
        families = text_string_to_metric_families(got.read().decode())
        found = {}
        for family in families:
            for sample in family.samples:
                found.setdefault(sample.name, {})[tuple(sorted(sample.labels.items()))] = sample.value
        return found
