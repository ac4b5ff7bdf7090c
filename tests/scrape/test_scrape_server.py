"""What a server is asked: over a real socket, with doors, delays and sizes that real ones have."""

import gzip
import json
import socket
import ssl
import subprocess
import threading
import time
import tracemalloc
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, HTTPServer, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from scrape_pages import H100, START, Pages, S, case, page_of

from farebox.collector.scrape import fetch
from farebox.collector.scrape.fetch import FetchError, HttpFetcher, Target
from farebox.collector.scrape.iterations import Iterations
from farebox.collector.scrape.llamacpp import used_part
from farebox.collector.scrape.mapping import engines
from farebox.collector.scrape.pace import Pace
from farebox.collector.scrape.source import ScrapeSource
from farebox.errors import InputError

PAGE = page_of(num_requests_running=1, generation_tokens_total=5)


class Fake:
    """What a fake server answers, and what it was asked."""

    def __init__(self, answer) -> None:
        self.answer = answer
        self.asked: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.at_once = self.most_at_once = 0
        self.url = ""


@contextmanager
def serving(answer, *, tls: tuple[Path, Path] | None = None, single: bool = False):
    """A server that answers `answer(path, headers)` → (status, body[, more headers]) on a free port."""
    fake = Fake(answer)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            fake.asked.append(self.path)
            fake.headers.append(dict(self.headers))
            fake.at_once += 1
            fake.most_at_once = max(fake.most_at_once, fake.at_once)
            status, body, *more = fake.answer(self.path, self.headers)
            self.send_response(status)
            for name, value in (more[0] if more else {}).items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            fake.at_once -= 1
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = (HTTPServer if single else ThreadingHTTPServer)(("127.0.0.1", 0), Handler)
    if tls is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*tls)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    fake.url = f"http{'s' if tls else ''}://127.0.0.1:{server.server_port}"
    try:
        yield fake
    finally:
        server.shutdown()
        server.server_close()


def get(target: Target, path: str = "/metrics") -> str:
    fetcher = HttpFetcher(target)
    try:
        return fetcher.get(path).text
    finally:
        fetcher.close()


def test_a_compressed_page_on_one_connection():
    with serving(lambda *_: (200, gzip.compress(PAGE.encode()), {"Content-Encoding": "gzip"})) as fake:
        fetcher = HttpFetcher(Target(fake.url))
        assert [fetcher.get("/metrics").text for _ in range(3)] == [PAGE] * 3
        assert fake.headers[0]["Accept-Encoding"] == "gzip"
        fetcher.close()


@pytest.mark.parametrize(
    ("status", "words"), [(401, "--token-env"), (403, "refuses the token"), (404, "no such page"), (501, "--metrics")]
)
def test_a_refusal_is_named(status: int, words: str):
    with serving(lambda *_: (status, b"no")) as fake, pytest.raises(FetchError, match=words) as caught:
        get(Target(fake.url))
    assert caught.value.status == status


def test_a_token_opens_the_door_and_is_told_to_nobody(monkeypatch, tmp_path: Path):  # B34
    def door(_path, headers):
        return (200, PAGE.encode()) if headers.get("Authorization") == "Bearer s3cret-token" else (401, b"")

    monkeypatch.setenv("LLM_KEY", "s3cret-token\n")
    (tmp_path / "token").write_text("s3cret-token\n")
    with serving(door) as fake:
        assert (
            get(Target(fake.url, token_env="LLM_KEY")) == get(Target(fake.url, token_file=tmp_path / "token")) == PAGE
        )
        source = ScrapeSource(Target(fake.url, token_env="LLM_KEY"), H100)
        look = source.poll(START, 0)
        source.close()
        shut = ScrapeSource(Target(fake.url))
        looks = [shut.poll(START + i, i) for i in range(4)]
        shut.close()
    assert look.run is not None
    assert "s3cret" not in repr((look, source.target, vars(source)))
    assert "wants a token (401)" in (looks[0].why or "")
    assert shut.wait_s == 8  # 1, 2, 4, 8: no endless fast retry


def test_a_token_that_is_not_there_is_said(tmp_path: Path):
    with pytest.raises(InputError, match="NO_SUCH_VARIABLE holds no token"):
        Target("http://h", token_env="NO_SUCH_VARIABLE").token()
    with pytest.raises(InputError, match="cannot read the token"):
        Target("http://h", token_file=tmp_path / "none").token()


@pytest.mark.parametrize("url", ["h:8000", "ftp://h", "http://", "http://user:pass@h/metrics"])
def test_an_address_is_one_and_holds_no_secret(url: str):
    with pytest.raises(InputError) as caught:
        Target(url)
    assert "pass@" not in str(caught.value)


@pytest.fixture(scope="session")
def certificate(tmp_path_factory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("tls")
    names = folder / "cert.pem", folder / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1"]
    command += ["-addext", "subjectAltName=IP:127.0.0.1", "-out", names[0], "-keyout", names[1]]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("needs openssl, to make a certificate")
    return names


def test_a_private_ca(certificate):  # B34
    with serving(lambda *_: (200, PAGE.encode()), tls=certificate) as fake:
        with pytest.raises(FetchError, match=r"not trusted .*--ca-file"):
            get(Target(fake.url))
        assert get(Target(fake.url, ca_file=certificate[0])) == PAGE
        with pytest.raises(InputError, match="no certificates"):
            get(Target(fake.url, ca_file=certificate[1].parent / "none.pem"))


def test_nobody_listens_and_plain_http_behind_https():
    with serving(lambda *_: (200, b"")) as fake:
        port = urlsplit(fake.url).port
        with pytest.raises(FetchError, match="does not speak TLS"):
            get(Target(f"https://127.0.0.1:{port}"))
    with pytest.raises(FetchError, match="nobody listens there"):
        get(Target(f"http://127.0.0.1:{port}"))


def test_a_slow_or_huge_page_is_given_up(monkeypatch):  # B20
    def slow(path, _headers):
        time.sleep(0.6 if path == "/slow" else 0)
        return 200, b"a 1\n" * 100_000

    monkeypatch.setattr(fetch, "MOST_BYTES", 1 << 18)
    with serving(slow) as fake:
        with pytest.raises(FetchError, match=r"did not answer within 0.2 s"):
            get(Target(fake.url, timeout_s=0.2), "/slow")
        with pytest.raises(FetchError, match="larger than"):
            get(Target(fake.url), "/huge")


@pytest.mark.parametrize("before", [b"HTTP/1.1 200 OK\r\nX: ", b"HTTP/1.1 200 OK\r\n\r\n"], ids=["head", "body"])
def test_a_server_that_sends_a_byte_now_and_then_is_given_up(before: bytes):
    def trickle() -> None:
        connection, _ = listener.accept()
        with connection, suppress(OSError):
            connection.sendall(before)
            for _ in range(30):
                connection.sendall(b"1")
                time.sleep(0.1)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=trickle, daemon=True).start()
        with pytest.raises(FetchError, match=r"did not answer within 0.4 s"):
            get(Target(f"http://127.0.0.1:{listener.getsockname()[1]}", timeout_s=0.4))


@pytest.mark.parametrize(
    ("times", "coding", "words"),
    [(1, "gzip", "larger than"), (2, "gzip, gzip", "nobody asked for"), (0, "gzip", "cannot be unpacked")],
)
def test_a_page_that_grows_when_unpacked_takes_no_memory(monkeypatch, times: int, coding: str, words: str):
    monkeypatch.setattr(fetch, "MOST_BYTES", 1 << 18)
    body = bytes(1 << 24)
    for _ in range(times):
        body = gzip.compress(body)
    with serving(lambda *_: (200, body, {"Content-Encoding": coding})) as fake:
        fetcher = HttpFetcher(Target(fake.url))
        tracemalloc.start()
        with pytest.raises(FetchError, match=words):
            fetcher.get("/metrics")
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        fetcher.close()
        assert most < 8 << 20  # of 16 MiB


def test_redirects_are_followed_a_few_times_and_never_with_the_token_to_others(monkeypatch):
    monkeypatch.setenv("KEY", "secret-of-the-server")
    with serving(lambda *_: (200, PAGE.encode())) as other:
        to = {"/metrics": "/here", "/here": f"{other.url}/there", "/round": "/round"}
        with serving(lambda path, _: (302, b"", {"Location": to[path]})) as fake:
            target = Target(fake.url, token_env="KEY")
            assert get(target) == PAGE
            assert "Authorization" in fake.headers[1]
            assert "Authorization" not in other.headers[0]
            with pytest.raises(FetchError, match="redirects"):
                get(target, "/round")


def test_a_busy_server_is_asked_by_one_and_rarely(monkeypatch):  # B37
    def busy(*_):
        time.sleep(0.1)
        return 200, PAGE.encode()

    with serving(busy, single=True) as fake:
        source = ScrapeSource(Target(fake.url), H100, period_s=1)
        looks = [source.poll(START + i * S, i * S) for i in range(3)]
        source.close()
    assert fake.most_at_once == 1
    assert all(look.run for look in looks)
    assert source.wait_s >= 2  # a page that took 0.1 s is read every 2 s: 5 % of the server's time


def test_a_page_that_fails_is_tried_later_and_later_up_to_half_a_minute():
    pace, waits = Pace(5), []
    for _ in range(8):
        pace.failed()
        waits.append(pace.wait_s)
    assert waits == [1, 2, 4, 8, 16, 30, 30, 30]
    pace.read(0.01, moved=True)
    assert pace.wait_s == 5


def test_one_slow_page_does_not_close_the_eyes_and_a_slow_server_is_asked_rarely():
    pace, waits = Pace(5), []
    for took_s in (0.01, 9.0, 0.01, 2.0, 1.0, 0.01):
        pace.read(took_s, moved=True)
        waits.append(pace.wait_s)
    assert waits == [5, 5, 5, 5, 20, 5]


def test_a_router_is_never_made_to_load_or_wake_a_model():  # B17
    told = json.loads(case("B17.server.json"))
    asked_models: list[str] = []

    def router(path, _headers):
        parts = urlsplit(path)
        if parts.path == "/models":
            return 200, json.dumps(told["GET /models"]).encode()
        model = parse_qs(parts.query).get("model")
        if model is None:
            return 400, told["GET /metrics"]["body"].encode()
        asked_models.extend(model)
        return 200, told["GET /metrics?model=A"]["body"].encode()

    with serving(router) as fake:
        source = ScrapeSource(Target(fake.url), H100)
        waits, at = [], 0.0
        for _ in range(7):
            look = source.poll(START + round(at * S), round(at * S))
            waits.append(source.wait_s)
            at += source.wait_s
        states = [{"id": "A", "status": {"value": "sleeping"}}, *told["GET /models"]["data"][1:]]
        told["GET /models"]["data"] = states
        asked_awake = len(asked_models)
        resting = source.poll(START + round(at * S), round(at * S))
        source.close()
    assert set(asked_models) == {"A"}
    assert look.reading is not None
    assert look.reading.counters["prompt_tokens"] == 1200
    assert waits[:3] == [5, 5, 5]
    assert waits[-1] >= 2 * 10  # an idle timer of 10 s runs out
    assert len(asked_models) == asked_awake
    assert resting.standing == "degraded"
    assert "A is sleeping, B is unloaded" in (resting.why or "")


def test_llamacpps_slots_tell_the_kv_cache(shared: Path):
    folder = shared / "data" / "llamacpp"
    page = (folder / "llamacpp_np4_after.metrics.txt").read_text()
    slots, props = (
        (folder / "llamacpp_np4_after.slots.json").read_text(),
        (folder / "llamacpp_idle.props.json").read_text(),
    )
    pages = Pages(page, props, slots, anything=True)
    reading = ScrapeSource(Target("http://h:8080"), fetcher=pages).poll(START, 0).reading
    assert reading is not None
    assert pages.asked == ["/metrics", "/props", "/slots"]
    assert reading.kv_ratios == ((116 + 115 + 119 + 117) / 4096,)
    assert (reading.facts["seats"], reading.model) == (4, "gemma3-270m")


def test_slots_of_any_build():
    slot = {"n_ctx": 100, "n_prompt_tokens": 30, "is_processing": True}
    assert used_part([slot, slot | {"is_processing": False}]) == 0.15
    assert used_part({"error": "no slots"}) is None
    assert used_part([{}]) is None


def test_tensorrt_llms_iterations_are_its_clock():
    def iteration(number: int, ms: float, context: int, generating: int) -> dict:
        batch = {"numContextRequests": 1, "numCtxTokens": context, "numGenRequests": generating}
        blocks = {"maxNumBlocks": 100, "usedNumBlocks": 25, "tokensPerBlock": 32}
        return {"iter": number, "iterLatencyMS": ms, "numActiveRequests": generating, "numQueuedRequests": 1,
                "inflightBatchingStats": batch, "kvCacheStats": blocks}  # fmt: skip

    pages = ["[]", json.dumps([iteration(1, 30.5, 128, 4), iteration(2, 9.5, 0, 5)]), "[]"]
    source = ScrapeSource(Target("http://h:8000"), H100, fetcher=Pages(*pages))
    looks = [source.poll(START + i * 5 * S, i * 5 * S) for i in range(3)]
    busy, idle = looks[1], looks[2]
    assert busy.step is not None
    assert idle.step is not None
    assert (busy.step.duration_ns, busy.step.basis) == (40_000_000, "interval")
    assert (busy.step.prefill_tokens, busy.step.output_tokens, busy.step.kv_blocks_used) == (128, 9, 25)
    assert (idle.step.duration_ns, idle.step.idle_before_ns, idle.step.running) == (0, 5 * S, 0)
    assert looks[0].run is not None


def test_ranks_of_one_iteration_work_at_the_same_time():
    ranks = [
        {"iter": 7, "attentionDpRank": rank, "iterLatencyMS": 20.0 + rank, "numActiveRequests": 3,
         "inflightBatchingStats": {"numCtxTokens": 8, "numGenRequests": 3},
         "kvCacheStats": {"maxNumBlocks": 100, "usedNumBlocks": 10 + rank, "tokensPerBlock": 32}}
        for rank in range(4)
    ]  # fmt: skip
    reading = Iterations(engines()["trtllm"]).read(ranks)
    assert (reading.counters["busy_s"], reading.counters["output_tokens"]) == (0.023, 12)
    assert (reading.gauges["running"], reading.kv_ratios) == (12, (0.1, 0.11, 0.12, 0.13))


def test_without_iterations_the_page_beside_them_is_read_once_it_tells_of_work():
    told = [FetchError("no such page", 404), "python_info 1\n", "trtllm_generation_tokens_total 5\n"]
    pages = Pages(
        *[page for one in told for page in ("[]", one)], *["trtllm_generation_tokens_total 9\n"] * 2, anything=True
    )
    source = ScrapeSource(Target("http://h:8000"), H100, fetcher=pages)
    readings = [source.poll(START + i * S, i * S).reading for i in range(4)]
    assert [reading.counters.get("output_tokens") for reading in readings if reading] == [None, None, 9, 9]
    assert readings[0] is not None
    assert "enable_iter_perf_stats" in readings[0].missing["running"]


def test_tensorrt_llms_other_page_is_found():
    told = [f"trtllm_generation_tokens_total {tokens}\n" for tokens in (5, 9)]
    pages = Pages(FetchError("no such page", 404), *told, anything=True)
    source = ScrapeSource(Target("http://h:8000"), H100, fetcher=pages)
    for i in range(2):
        source.poll(START + i * S, i * S)
    assert pages.asked == ["/metrics", "/prometheus/metrics", "/prometheus/metrics"]


@pytest.mark.parametrize("text", ["<html>hi</html>", '{"detail": "nothing"}', '[{"a": 1}, 2]', "", "nothing but words"])
def test_what_is_no_page_is_a_state_and_no_error(text: str):  # B10
    look = ScrapeSource(Target("http://h:8000"), fetcher=Pages(text)).poll(START, 0)
    assert look.standing == "down"
    assert look.run is None
    assert look.why


def test_a_page_of_gpus_is_no_engine():  # D10
    look = ScrapeSource(Target("http://h:9400"), fetcher=Pages(case("D10.prom"))).poll(START, 0)
    assert "a page of DCGM exporter: it tells of GPUs" in (look.why or "")
