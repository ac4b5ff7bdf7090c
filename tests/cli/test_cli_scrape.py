"""`farebox top http://…`: one sentence for what cannot be watched, one snapshot for what can."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

CASES = Path(__file__).parents[1] / "cases"


@pytest.fixture
def served():
    """A server whose page is `answers["page"]`; a page may count up."""
    answers = {"page": "", "tokens": 0}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answers["tokens"] += 100
            body = answers["page"].replace("TOKENS", str(answers["tokens"])).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    answers["url"] = f"http://127.0.0.1:{server.server_port}"
    yield answers
    server.shutdown()
    server.server_close()


def test_an_engine_is_shown_and_kept(inside, served):
    served["page"] = (
        'vllm:num_requests_running{engine="0",model_name="llama-3-8b"} 3\nvllm:generation_tokens_total TOKENS\n'
    )
    done = inside(
        "top", served["url"], "--gpu", "h100", "--gpus", "1", "--rate", "3.6", "--interval", "1", "--store", "s"
    )
    assert "3 on board" in done.stdout
    assert "llama-3-8b · 1×H100 SXM · $3.60/h" in done.stdout
    assert "twice, 1 s apart" in done.stderr
    again = json.loads(inside("top", "s", "--json").stdout)
    assert (again["output_tokens"], again["accounts"]["unobserved"]) == (100, 0)
    assert "unknown" in inside("report", "s").stdout


def test_what_cannot_be_watched_is_one_sentence(inside, served):
    served["page"] = (CASES / "B08.prom").read_text()
    assert "it tells no model metrics" in inside("top", served["url"], check=1).stderr
    served["page"] = "<html>welcome</html>"
    assert "not a metrics page: the answer is HTML" in inside("top", served["url"], check=1).stderr
    assert "nobody listens there" in inside("top", "http://127.0.0.1:9", check=1).stderr
    assert "write it as http://HOST:PORT" in inside("top", "http://", check=2).stderr
    assert "--gpu goes with an address" in inside("top", "some-store", "--gpu", "h100", check=2).stderr
