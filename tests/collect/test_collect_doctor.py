"""What the doctor says of sources and spools."""

import http.server
import json
import os
import threading

import pytest
from click.testing import CliRunner
from spooled_telling import Teller, spool

from farebox.cli.app import app
from farebox.collector.unmetered import unmetered_run
from farebox.events import LEDGER, REQUESTS, SHARES, STEPS, Batch, Progress
from farebox.storage.store import create_store


def test_sources_and_spools(tmp_path):
    create_store(tmp_path / "s").close()
    spool(tmp_path / "s" / "spool" / "late", Teller().life(3))
    spool(tmp_path / "more" / "lossy", [{"dropped": 9}])
    os.utime(tmp_path / "s" / "spool" / "late" / "00000000.spool", (1, 1))
    (tmp_path / "s" / "aside").mkdir()
    (tmp_path / "s" / "aside" / "w.jsonl").write_text("{}\n")
    config = tmp_path / "farebox.toml"
    config.write_text(
        'store = "s"\n[[source]]\nkind = "scrape"\nurl = "http://127.0.0.1:9"\nengine = "gone"\n'
        '[[source]]\nkind = "spool"\npath = "more"\n[[source]]\nkind = "spool"\npath = "none"\n'
    )
    done = CliRunner().invoke(app, ["doctor", "-c", str(config), "--json"])
    assert done.exit_code == 1
    found = {check["name"]: check for check in json.loads(done.stdout)}
    assert found["source gone"]["level"] == "bad" and found["source gone"]["says"].count("127.0.0.1:9") == 1
    assert found["spool late"]["level"] == "bad" and "farebox collect" in found["spool late"]["advice"]
    assert found["spool lossy"]["level"] == "note" and "9 events lost" in found["spool lossy"]["says"]
    assert found["aside w"]["level"] == "bad" and found[f"spools {tmp_path / 'none'}"]["level"] == "note"


@pytest.fixture
def answering():
    """The address of a server that answers every request with the same status and body, which the test sets."""
    told = {"status": 200, "body": b""}

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(told["status"])
            self.send_header("Content-Length", str(len(told["body"])))
            self.end_headers()
            self.wfile.write(told["body"])

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    told["url"] = f"http://127.0.0.1:{server.server_port}"
    yield told
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize(
    ("status", "body", "says"),
    [
        (200, b"<html></html>", "is the address that of the metrics?"),
        (200, b"", "the page is empty"),
        (200, b"python_info 1\n", "--disable-log-stats"),
        (401, b"", "(token_env = …, token_file = …)"),
        (404, b"", "check the address"),
        (503, b"", "it may be loading its model"),
        (500, b"", "see its log"),
    ],
)
def test_a_source_that_cannot_be_read_says_what_happened_where_and_what_to_do(tmp_path, answering, status, body, says):
    answering["status"], answering["body"] = status, body
    found = look_at(tmp_path, answering["url"])["source chat"]
    assert (found["level"], found["says"].count(answering["url"])) == ("bad", 1)
    assert says in found["says"]


def test_what_lacks_in_the_file_is_named_as_it_is_spelled_there(tmp_path, answering):
    answering["body"] = b'vllm:num_requests_running{engine="0"} 1\n'
    found = look_at(tmp_path, answering["url"])
    assert found["source chat"]["level"] == "note"
    assert "(gpu = …)" in found["source chat"]["says"] and "(gpus = …)" in found["source chat"]["says"]
    assert "`farebox collect` makes it" in found["store"]["says"]


def look_at(folder, url):
    """What the doctor says of a file with one source, by name."""
    config = folder / "farebox.toml"
    config.write_text(f'store = "s"\n[[source]]\nkind = "scrape"\nurl = "{url}"\nengine = "chat"\n')
    done = CliRunner().invoke(app, ["doctor", "-c", str(config), "--json"])
    return {check["name"]: check for check in json.loads(done.stdout)}


def test_a_page_and_a_proxy_that_name_one_engine_in_two_ways(tmp_path):
    config = tmp_path / "farebox.toml"
    config.write_text(
        'store = "s"\n[[source]]\nkind = "scrape"\nurl = "http://127.0.0.1:9"\nengine = "chat"\n'
        '[[source]]\nkind = "scrape"\nurl = "http://127.0.0.1:7"\n'
    )

    def checks():
        told = CliRunner().invoke(app, ["doctor", "-c", str(config), "--json"]).stdout
        return {check["name"]: check for check in json.loads(told)}

    (tmp_path / "s" / "spool").mkdir(parents=True)  # a writer came first
    assert checks()["store"]["level"] == "note" and "`farebox collect` makes it" in checks()["store"]["says"]

    def record(engine_id, at_ns):
        with create_store(tmp_path / "s") as store:
            run = unmetered_run(engine_id, f"proxy-{at_ns}", "h", at_ns)
            nothing = (table.to_arrow([]) for table in (STEPS, SHARES, REQUESTS, LEDGER))
            store.append(Batch(run, *nothing, Progress(0, 0, at_ns)))

    record("127.0.0.1:7", 1)
    assert "name chat" not in checks()
    record("127.0.0.1:9", 2)
    assert checks()["name chat"]["level"] == "bad" and "--engine chat" in checks()["name chat"]["advice"]
    record("chat", 3)
    assert "name chat" not in checks()
    assert (checks()["rates"]["level"], checks()["capacity"]["level"]) == ("note", "note")  # it has no GPUs to pay for
    for command in ("rates add {} --gpu-type h100 --price 4", "hosts add {} h --gpus 1 --type h100 --from 2026-01-01"):
        words = command.format(tmp_path / "s").split()
        assert CliRunner().invoke(app, words).exit_code == 0
    assert (checks()["rates"]["level"], checks()["capacity"]["level"]) == ("ok", "ok")
