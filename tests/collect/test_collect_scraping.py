"""A scraped engine: tenants from a proxy's usage, and nothing twice where a spool tells its steps."""

import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from spooled_telling import Collector, Teller, append_lines

from farebox.collector.collect.scraping import scraped_engine
from farebox.collector.config.sources import ScrapeConfig
from farebox.events import INTERVALS, LEDGER

PAGE = """vllm:num_requests_running{{engine="0",model_name="m"}} 2
vllm:num_requests_waiting{{engine="0",model_name="m"}} 0
vllm:kv_cache_usage_perc{{engine="0",model_name="m"}} 0.5
vllm:prompt_tokens_total{{engine="0",model_name="m"}} {prompt}
vllm:generation_tokens_total{{engine="0",model_name="m"}} {output}
"""


@pytest.fixture
def engine():
    """A page whose counters the test moves."""
    counts = {"prompt": 1000, "output": 1000}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            body = PAGE.format(**counts).encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    counts["url"] = f"http://127.0.0.1:{server.server_port}"
    yield counts
    server.shutdown()
    server.server_close()


def scraped(collector, engine):
    config = ScrapeConfig(kind="scrape", url=engine["url"], engine="chat", gpu="h100", gpus=1, interval=1)
    return scraped_engine(config, collector.store, collector.engines)


def tokens(collector):
    found = Counter()
    for line in LEDGER.from_arrow(collector.store.read(LEDGER)):
        found[line.tenant_id, "output"] += line.output_tokens
        found["requests"] += line.requests
    return +found


def test_usage_of_a_proxy_splits_an_interval_and_requests_are_counted_once(tmp_path, engine):
    collector = Collector(tmp_path / "s", ["chat"])
    source = scraped(collector, engine)
    source.look()
    collector.root.mkdir(exist_ok=True)
    teller = Teller()
    request = teller.request(finished_ns=time.time_ns(), arrived_ns=time.time_ns())
    del request["request"]["run_id"]
    usages = [
        {"usage": {"engine_id": "chat", "tenant_id": tenant, "tier": "standard", "at_ns": time.time_ns(),
                   "prompt_tokens": 10, "output_tokens": output}}
        for tenant, output in (("ann", 30), ("bob", 10))
    ]  # fmt: skip
    append_lines(collector.root / "proxy", [*usages, request])
    collector.look()
    engine["prompt"] += 20
    engine["output"] += 40
    time.sleep(1.1)
    source.look()
    assert tokens(collector) == {("ann", "output"): 30, ("bob", "output"): 10, "requests": 1}
    collector.look()
    assert not (collector.root / "proxy").exists()
    source.close()
    collector.store.close()


def test_beside_a_spool_a_page_gives_intervals_only(tmp_path, engine):
    collector = Collector(tmp_path / "s", ["chat"])
    teller = Teller(start_ns=time.time_ns() - 10**9, gpus=1)
    collector.root.mkdir(exist_ok=True)
    append_lines(collector.root / "plugin", [teller.run(), teller.step()])
    collector.source._find()
    [drain] = collector.source.drains.values()
    drain.load()
    source = scraped(collector, engine)
    source.look()
    engine["output"] += 40
    time.sleep(1.1)
    source.look()
    drain.record()
    assert collector.store.read(INTERVALS).num_rows == 1
    assert collector.ledger().total() == teller.now_ns - teller.start_ns == collector.walls()
    assert {step.run_id for step in collector.steps()} == {"r1"}
    collector.look()
    assert not collector.engines.is_exact("chat"), "its writer is gone, and all is recorded"
    engine["output"] += 40
    source.look()
    assert {run.run_id: run.gpus for run in collector.store.runs() if run.gpus} == {"r1": 1}
    counted = tokens(collector)["unknown", "output"]
    engine["output"] += 9
    time.sleep(1.1)
    source.look()
    source.close()
    assert tokens(collector)["unknown", "output"] == counted + 9, "the engine goes on without its plugin"
    assert sum(run.gpus for run in collector.store.runs()) == 2
    assert collector.ledger().total() == collector.walls()
    collector.store.close()


def test_what_moved_while_no_collector_ran_is_counted_and_its_time_unobserved(tmp_path, engine):
    collector = Collector(tmp_path / "s", ["chat"])
    source = scraped(collector, engine)
    for output in (0, 40):
        engine["output"] += output
        source.look()
        time.sleep(0.6)
    collector.store.close()  # killed: nobody tells the end of the run

    engine["output"] += 500
    collector = Collector(tmp_path / "s", ["chat"])
    source = scraped(collector, engine)
    source.look()
    assert tokens(collector) == {("unknown", "output"): 540}
    assert collector.ledger().total() == collector.walls()
    assert collector.ledger("account")["unobserved",] > 500_000_000
    source.close()
    engine["output"] = 7
    source = scraped(collector, engine)
    source.look()
    assert tokens(collector) == {("unknown", "output"): 547}, "an engine that was started anew meanwhile"
    source.close()
    collector.store.close()
