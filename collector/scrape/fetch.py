"""Fetching: one request at a time, bounded in time and size, failures in plain words."""

from __future__ import annotations

import os
import re
import socket
import ssl
import threading
import time
import zlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol
from urllib.parse import urlsplit

from ...errors import FareboxError, InputError
from ...version import __version__
from .spelling import FLAGS, Spelling

if TYPE_CHECKING:
    import httpx

TIMEOUT_S = 10.0
MOST_BYTES = 16 * 2**20
_MOST_REDIRECTS = 3
_KEPT_S = 4.0
"""How long a connection is kept: uvicorn, on which most engines run, hangs up on one that was idle for 5 s."""
_REFUSED = "refused"
_OF_PYTHON = re.compile(r"^.*: (?=\w)| \(_ssl\.c:\d+\)$")
_ACCEPT = "text/plain;version=0.0.4,application/openmetrics-text;version=1.0.0;q=0.5,*/*;q=0.1"
_SAYS = {
    400: "the server does not accept the request (400)",
    401: "the server wants a token (401): name the variable or file that holds it ({0.token_env}, {0.token_file})",
    403: "the server refuses the token (403): use one that may read the metrics",
    404: "there is no such page (404): check the address, and that the engine's metrics are switched on",
    405: "there is no metrics page here (405): check the address",
    429: "the server limits requests (429): scrape it less often",
    503: "the server is not ready (503): it may be loading its model",
    501: "the server has its metrics switched off (501): start it with them, llama.cpp with --metrics",
}


class FetchError(FareboxError):
    """A page that could not be fetched; `status` is the answer's, None when there was none."""

    def __init__(self, why: str, status: int | None = None) -> None:
        super().__init__(why)
        self.status = status


class NobodyListensError(FetchError):
    """There was no server at the address."""


class Answer(NamedTuple):
    """What a server said, and how long it took."""

    text: str
    took_s: float


class Fetcher(Protocol):
    """Gets one page after the other of one server."""

    def get(self, path: str) -> Answer:
        """The page at a path (with its query); FetchError in plain words."""
        ...

    def close(self) -> None:
        """Let go of the connection."""
        ...


@dataclass(frozen=True)
class Target:
    """A server to be scraped. The token is looked up whenever a connection is made and is told to nobody else."""

    url: str
    token_env: str | None = None
    token_file: Path | None = None
    ca_file: Path | None = None
    timeout_s: float = TIMEOUT_S
    spelling: Spelling = FLAGS

    def __post_init__(self) -> None:
        """Refuse what is no address of a web server, and secrets in it, which screens and logs would show."""
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InputError(f"{self.place} is not an address: write it as http://HOST:PORT")
        if parts.username or parts.password:
            token = f"{self.spelling.token_env} or {self.spelling.token_file}"
            raise InputError(f"{self.place}: no password in an address; use {token}")

    @property
    def place(self) -> str:
        """Scheme, host and port, for people; never what may be secret."""
        parts = urlsplit(self.url)
        host = parts.netloc.rpartition("@")[2]
        return f"{parts.scheme}://{host}" if parts.scheme and host else self.url.partition("?")[0].rpartition("@")[2]

    @property
    def host(self) -> str:
        """The host's name."""
        return urlsplit(self.url).hostname or ""

    @property
    def path(self) -> str | None:
        """The page that the address names; None: the engine's usual one."""
        parts = urlsplit(self.url)
        query = f"?{parts.query}" if parts.query else ""
        return None if parts.path in ("", "/") and not query else (parts.path or "/") + query

    def token(self) -> str | None:
        """The bearer token; InputError when it is not where it should be."""
        if self.token_env is not None:
            value = os.environ.get(self.token_env, "")
            where = f"the variable {self.token_env}"
        elif self.token_file is not None:
            value, where = _read(self.token_file), str(self.token_file)
        else:
            return None
        if not value.strip() or not value.strip().isascii() or not value.strip().isprintable():
            raise InputError(f"{where} holds no token for {self.place}")
        return value.strip()


class HttpFetcher:
    """Fetches over HTTP on one connection, without any proxy that the environment names."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._client: httpx.Client | None = None
        self._socket: socket.socket | None = None

    def get(self, path: str) -> Answer:
        """See `Fetcher`. A page that takes too long or is too large is given up, its connection with it."""
        import httpx

        began = time.monotonic()
        deadline = began + self._target.timeout_s
        watch = threading.Timer(self._target.timeout_s, self._hang_up)
        watch.daemon = True
        watch.start()
        try:
            client = self._client = self._client or self._connect()
            text = self._read(client, path)
            if time.monotonic() >= deadline:  # what was hung up on may look like the end of a page
                raise FetchError(self._too_slow())
            return Answer(text, time.monotonic() - began)
        except FetchError as error:
            if error.status is None:
                self.close()
            raise
        except httpx.TimeoutException:
            self.close()
            raise FetchError(self._too_slow()) from None
        except (httpx.HTTPError, httpx.InvalidURL, ssl.SSLError, OSError) as error:
            self.close()
            if time.monotonic() >= deadline:
                raise FetchError(self._too_slow()) from None
            kind = NobodyListensError if _REFUSED in str(error) else FetchError
            raise kind(f"{self._target.place}: {_words(error, self._target.spelling)}") from None
        finally:
            watch.cancel()

    def close(self) -> None:
        """See `Fetcher`."""
        if self._client is not None:
            self._client.close()
            self._client = self._socket = None

    def _connect(self) -> httpx.Client:
        import httpx

        token = self._target.token()
        headers = {"Accept": _ACCEPT, "Accept-Encoding": "gzip", "User-Agent": f"farebox/{__version__}"}
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        return httpx.Client(
            headers=headers,
            verify=_trust(self._target.ca_file),
            timeout=self._target.timeout_s,
            limits=httpx.Limits(max_connections=1, max_keepalive_connections=1, keepalive_expiry=_KEPT_S),
            follow_redirects=False,
            trust_env=False,
        )

    def _trace(self, event: str, info: dict[str, Any]) -> None:
        if event in ("connection.connect_tcp.complete", "connection.start_tls.complete"):
            self._socket = info["return_value"].get_extra_info("socket")

    def _hang_up(self) -> None:
        """End a wait that no timeout of a single read ends: a server may send a byte now and then for ever."""
        if self._socket is not None:
            with suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)

    def _read(self, client: httpx.Client, path: str) -> str:
        parts = urlsplit(self._target.url)
        request: httpx.Request | None = client.build_request(
            "GET", f"{parts.scheme}://{parts.netloc}{path}", extensions={"trace": self._trace}
        )
        for _ in range(_MOST_REDIRECTS + 1):
            answer = client.send(request, stream=True)
            try:
                if answer.next_request is None:
                    return self._body(answer, path)
                request = answer.next_request  # less the token where it leads to another server
            finally:
                answer.close()
        raise FetchError(f"{self._target.place}{path} leads on and on to other pages (redirects): check the address")

    def _body(self, answer: httpx.Response, path: str) -> str:
        if answer.status_code != 200:
            says = _says(answer.status_code, self._target.spelling)
            raise FetchError(f"{self._target.place}{path}: {says}", answer.status_code)
        unpack = _unpacker(answer.headers.get("content-encoding", ""), f"{self._target.place}{path}")
        body = bytearray()
        for piece in answer.iter_raw():
            body += unpack(piece, MOST_BYTES + 1 - len(body))
            if len(body) > MOST_BYTES:
                raise FetchError(f"{self._target.place}{path} is larger than {MOST_BYTES >> 20} MiB: it is not read")
        return body.decode("utf-8", "replace")

    def _too_slow(self) -> str:
        return f"{self._target.place} did not answer within {self._target.timeout_s:g} s: is it overloaded, or stopped?"


def _trust(ca_file: Path | None) -> ssl.SSLContext | bool:
    if ca_file is None:
        return True
    try:
        return ssl.create_default_context(cafile=ca_file)
    except (OSError, ssl.SSLError) as error:
        raise InputError(f"{ca_file} holds no certificates that can be used: {error}") from None


def _unpacker(coding: str, place: str) -> Callable[[bytes, int], bytes]:
    """Unpacks pieces of a body, to so many bytes at most; FetchError for what was not asked for."""
    if coding.strip().lower() in ("", "identity"):
        return lambda piece, _: piece
    if coding.strip().lower() not in ("gzip", "x-gzip"):
        raise FetchError(f"{place} is compressed in a way that nobody asked for ({coding[:40]})")
    unpacker = zlib.decompressobj(zlib.MAX_WBITS | 16)

    def unpack(piece: bytes, most: int) -> bytes:
        try:
            return unpacker.decompress(piece, most)
        except zlib.error:
            raise FetchError(f"{place} is not what it says: it cannot be unpacked (gzip)") from None

    return unpack


def _says(status: int, spelling: Spelling) -> str:
    return _SAYS.get(status, f"the server answered {status}: see its log").format(spelling)


def _words(error: Exception, spelling: Spelling) -> str:
    text = str(error)
    if "CERTIFICATE_VERIFY_FAILED" in text:
        return f"its certificate is not trusted ({_OF_PYTHON.sub('', text)}): name the CA's file ({spelling.ca})"
    if "WRONG_VERSION_NUMBER" in text or "record layer" in text:
        return "it does not speak TLS: write http:// instead of https://"
    if _REFUSED in text:
        return "nobody listens there (connection refused): is the engine up, and the port right?"
    if "Name or service not known" in text or "No address associated" in text or "name resolution" in text:
        return "there is no host of that name: check the address"
    if "reset by peer" in text or "without sending a response" in text:
        return "the server hung up: if it speaks TLS, write https:// instead of http://"
    return text or type(error).__name__


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read the token from {path}: {error}") from None
