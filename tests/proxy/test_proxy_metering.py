"""What the proxy records, against what the server behind it recorded itself; and whose keys count."""

import asyncio
import hashlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from contextlib import asynccontextmanager, closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import pytest
from click.testing import CliRunner
from proxy_wire import proxying
from served_engine import MOST_TOKENS, behind_http, driver_of

from farebox.cli.app import app
from farebox.collector.background import BackgroundRecorder
from farebox.collector.embedded import EmbeddedEngine
from farebox.collector.proxy.keys import file_keys, read_keys
from farebox.collector.recorder import Recorder
from farebox.collector.spooled.engines import Engines
from farebox.collector.spooled.source import SpoolSource
from farebox.engine.server.access import Access
from farebox.engine.server.service import Offer
from farebox.errors import InputError
from farebox.events import API_KEYS, LEDGER, REQUESTS, ApiKey, hash_key
from farebox.roofline import Replica, gpu, model
from farebox.storage.spool.reader import SpoolReader, spools
from farebox.storage.spool.writer import SpoolWriter
from farebox.storage.store import create_store

TENANTS = ("chat", "code", "voice")


def keys():
    return [ApiKey(hash_key(f"key-of-{tenant}-0123456789"), tenant, "6789", 0, None) for tenant in TENANTS]


@asynccontextmanager
async def served(store):
    """`farebox serve` behind the proxy: it believes the tenant that the proxy tells, and records into `store`."""
    config = EmbeddedEngine(Replica(gpu("h100"), model("llama-3.2-1b"))).config(["proxied"], has_prefix_ids=True)
    recorder = Recorder(store, bulk=False)
    recording = BackgroundRecorder(recorder, recorder.flush)
    driver, metrics = driver_of(config, recording, recording.beat)
    offer, access = Offer(model_names=("tiny",), max_model_len=MOST_TOKENS), Access(tenant_header="x-tenant-id")
    with closing(recording):
        async with behind_http(config, offer, access, driver, metrics) as port:
            yield port


async def ask(client, number):
    """Request number `number`: streams and whole answers, chats and completions, several choices, shared prompts."""
    headers = {"Authorization": f"Bearer key-of-{TENANTS[number % 3]}-0123456789", "X-Tenant-Id": "mallory"}
    prompt = f"The {number % 4}th of four prompts, shared by a few. " * (5 + 40 * (number % 4))
    body = {"model": "tiny", "max_tokens": 3 + number % 9, "stream": number % 2 == 0, "n": 1 + number % 3}
    chat = number % 5 < 3
    body |= {"messages": [{"role": "user", "content": prompt}]} if chat else {"prompt": prompt}
    path = "/v1/chat/completions" if chat else "/v1/completions"
    answer = await client.post(path, json=body, headers=headers)
    assert answer.status_code == 200
    assert b'"usage"' not in answer.content or not body["stream"]


async def test_tenants_have_the_tokens_that_the_server_itself_recorded(tmp_path):
    access = Access()
    access.use(keys())
    with create_store(tmp_path) as store:
        async with served(store) as port, proxying(port, access) as proxied:
            url = f"http://127.0.0.1:{proxied.port}"
            async with httpx.AsyncClient(base_url=url, timeout=60) as client:
                await asyncio.gather(*(ask(client, number) for number in range(30)))
        behind = REQUESTS.from_arrow(store.read(REQUESTS))
    by_tenant: dict[str, Counter[str]] = {tenant: Counter() for tenant in TENANTS}
    for row in behind:
        first = int(row.request_id.rpartition("-")[2]) == 0  # a prompt counts once, however many choices it has
        by_tenant[row.tenant_id].update(output=row.output_tokens)
        by_tenant[row.tenant_id].update(prompt=row.prompt_tokens * first, cached=row.cached_tokens * first)
    seen: dict[str, Counter[str]] = {tenant: Counter() for tenant in TENANTS}
    added: dict[str, Counter[str]] = {tenant: Counter() for tenant in TENANTS}
    for event in proxied.told:
        for kind, found in (("request", seen), ("usage", added)):
            if row := event.get(kind):
                counts = {name: row[f"{name}_tokens"] for name in ("prompt", "cached", "output")}
                found[row["tenant_id"]].update(counts)
    assert seen == by_tenant == added
    assert sum(seen[tenant]["cached"] for tenant in TENANTS) > 0
    assert len(proxied.requests) == 30


def write_keys(path, *rows):
    path.write_text("".join(f'[[key]]\nsha256 = "{hash_key(key)}"\ntenant = "{tenant}"\n' for key, tenant in rows))


def test_keys_of_a_file_are_hashes_and_change_with_it(tmp_path):
    path = tmp_path / "keys.toml"
    write_keys(path, ("first-key-0123456789", "chat"))
    source = file_keys(path)
    access = Access()
    access.use(tuple(source()))
    assert access.tenant({"authorization": "Bearer first-key-0123456789"}) == "chat"
    write_keys(path, ("first-key-0123456789", "chat"), ("second-key-0123456789", "code"))
    access.use(tuple(source()))
    assert access.tenant({"authorization": "Bearer second-key-0123456789"}) == "code"
    assert hashlib.sha256(b"first-key-0123456789").hexdigest() in path.read_text()
    path.write_text(json.dumps({hash_key("third-key-0123456789"): "voice"}))  # as `tenants key export` writes it
    access.use(tuple(source()))
    assert access.tenant({"authorization": "Bearer third-key-0123456789"}) == "voice"


@pytest.mark.parametrize(
    "text",
    [
        "key = 1",
        "[[key]]\nsha256 = 'ab'\ntenant = 'x'",
        "[[key]]\nkey = 'plain-text-key'\ntenant = 'x'",
        f"[[key]]\nsha256 = '{'a' * 64}'\ntenant = ''",
        f"[[key]]\nsha256 = '{'a' * 64}'\ntenant = 'x'\n" * 2,
        "[keys]\n",
        '{"ab": "x"}',
        '{"ab": ',
        "not toml",
    ],
)
def test_a_file_of_keys_that_is_wrong_is_refused(tmp_path, text):
    path = tmp_path / "keys.toml"
    path.write_text(text)
    with pytest.raises(InputError, match=r"keys\.toml"):
        read_keys(path)


class Polite(BaseHTTPRequestHandler):
    """A server that keeps its connections open."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        answer = json.dumps({"choices": [{"finish_reason": "stop"}], "usage": {"completion_tokens": 7}}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)


@pytest.fixture
def polite_port():
    with ThreadingHTTPServer(("127.0.0.1", 0), Polite) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


def test_the_command_serves_with_a_stores_keys_and_leaves_its_records_in_a_spool(tmp_path, polite_port):
    place = tmp_path / "s"
    with create_store(place) as store:
        store.put(API_KEYS, keys()[0])
    upstream = f"http://127.0.0.1:{polite_port}"
    command = ["proxy", "--upstream", upstream, "--store", str(place), "--listen", "127.0.0.1:0"]
    process = subprocess.Popen(
        [sys.executable, "-m", "farebox.cli", *command], stderr=subprocess.PIPE, text=True, env=dict(os.environ)
    )
    assert process.stderr is not None
    url = process.stderr.readline().split()[1]
    try:
        body = {"model": "m", "messages": []}
        assert httpx.post(f"{url}/v1/chat/completions", json=body).status_code == 401
        headers = {"Authorization": "Bearer key-of-chat-0123456789"}
        answer = httpx.post(f"{url}/v1/chat/completions", json=body, headers=headers)
        assert answer.json()["usage"] == {"completion_tokens": 7}
    finally:
        process.send_signal(signal.SIGTERM)  # while a connection to the server waits
    assert process.wait(20) == 0
    (folder,) = spools(place / "spool")
    (told,) = [event.value["request"] for event in SpoolReader(folder).read() if "request" in event.value]
    assert (told["tenant_id"], told["engine_id"], told["output_tokens"]) == ("chat", upstream[7:], 7)


@pytest.mark.parametrize(
    ("flags", "what"),
    [
        (["--upstream", "ftp://x", "--spool", "s"], "write it as http://HOST:PORT"),
        (["--upstream", "http://h:1"], "say where to record"),
        (["--upstream", "http://h:1", "--spool", "s", "--listen", "8080"], "write it as HOST:PORT"),
        (["--upstream", "http://h:1", "--spool", "s", "--keys", "no.toml"], "cannot be read"),
        (["--upstream", "http://h:1", "--spool", "s", "--upstream-key-env", "NO_SUCH"], "there is no key in it"),
    ],
)
def test_what_the_command_cannot_use_it_refuses_in_one_line(tmp_path, monkeypatch, flags, what):
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["proxy", *flags])
    assert done.exit_code == 2
    assert what in done.output


async def test_what_the_proxy_told_is_taken_over_with_what_nobody_knows_as_unknown(tmp_path, start):
    async def script(asking):
        tokens = {"prompt_tokens": 40, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 32}}
        if asking.json["model"] == "good":
            await asking.answer(json.dumps({"model": "good", "usage": tokens}).encode())
        else:
            await asking.answer(b"{}", status="429 Too Many Requests")

    proxied = await start(script)
    for name in ("good", "good", "bad"):
        await proxied.ask(body={"model": name, "messages": []})
    writer = SpoolWriter(tmp_path / "s/spool/proxy-1")
    for event in proxied.told:
        writer.put(event)
    writer.close()
    with create_store(tmp_path / "s") as store:
        source = SpoolSource(store, tmp_path / "s/spool", Engines())
        source.look()
        assert source.faults == {"damaged": 0, "dropped": 0, "refused": 0}
        requests = REQUESTS.from_arrow(store.read(REQUESTS))
        lines = LEDGER.from_arrow(store.read(LEDGER))
    told = Counter((r.model, r.finish_reason, r.prompt_tokens, r.cached_tokens, r.output_tokens) for r in requests)
    assert told == {("good", "stop", 40, 32, 7): 2, ("bad", "rejected", None, None, None): 1}
    sums = [sum(getattr(line, name) for line in lines) for name in ("prompt_tokens", "cached_tokens", "output_tokens")]
    assert (*sums, sum(line.requests for line in lines)) == (80, 64, 14, 3)
