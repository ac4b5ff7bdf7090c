"""What the metering proxy adds to a stream: the delay of each event, beside a direct connection to the same server.

python benchmarks/proxy.py [--streams 200] [--events 100] [--pause-ms 50] [--rounds 3]

A cheap server (one process) streams events that carry the instant at which they were written; clients (this process)
read them, by turns straight from the server and through `farebox proxy` (a third process). All on one machine, so a
delay is the difference of two readings of one clock. Streams begin one after the other within a second, and events
count that are written while all of them run. Goal: 2 ms at the 99th percentile of 200 streams.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import subprocess
import sys
import tempfile
import time

import psutil

GOAL_MS = 2.0
RAMP_S = 1.0
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
BODY = json.dumps({"model": "m", "stream": True, "messages": [{"role": "user", "content": "x" * 400}]}).encode()
ASK = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%b" % (len(BODY), BODY)
EVENT = (
    b'data: {"id":"chatcmpl-8760d5c2d5989c65","object":"chat.completion.chunk","created":1795958104,"model":"tiny",'
    b'"choices":[{"index":0,"delta":{"content":"%020d"},"logprobs":null,"finish_reason":null,"token_ids":null}],'
    b'"usage":{"prompt_tokens":115,"total_tokens":%d,"completion_tokens":%d}}\n\n'
)
MARK = re.compile(rb'"content":"(\d{20})"')
LENGTH = re.compile(rb"content-length: (\d+)", re.IGNORECASE)
LAST = b"0\r\n\r\n"


async def serve(events: int, pause_s: float) -> None:
    """The server: every request gets so many events, one each `pause_s`."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                await reader.readexactly(int(LENGTH.search(head)[1]))  # type: ignore[index]
                writer.write(HEAD)
                due = time.monotonic()
                for number in range(1, events + 1):
                    due += pause_s
                    await asyncio.sleep(max(0.0, due - time.monotonic()))
                    event = EVENT % (time.monotonic_ns(), 115 + number, number)
                    writer.write(b"%x\r\n%b\r\n" % (len(event), event))
                writer.write(LAST)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, backlog=2048)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


async def read_stream(port: int, start_s: float, events: list[tuple[int, int]]) -> None:
    """One client: asks after `start_s`, and keeps when each event was written and when it came, in ns."""
    await asyncio.sleep(start_s)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(ASK)
    data = b""
    while not data.endswith(LAST):
        data = await reader.read(2**16)
        now = time.monotonic_ns()
        events.extend((int(at), now) for at in MARK.findall(data))
    writer.close()


async def delays_of(port: int, streams: int, all_s: float) -> list[int]:
    """Delays of the events of so many streams that were written while all ran: `all_s`, after `RAMP_S`."""
    events: list[tuple[int, int]] = []
    all_run_ns = time.monotonic_ns() + int(RAMP_S * 1e9)
    await asyncio.gather(*(read_stream(port, RAMP_S * n / streams, events) for n in range(streams)))
    return sorted(came - wrote for wrote, came in events if 0 <= wrote - all_run_ns < all_s * 1e9)


def at(delays: list[int], part: float) -> float:
    """A quantile in ms."""
    return delays[min(len(delays) - 1, int(len(delays) * part))] / 1e6


def start_server(args: argparse.Namespace) -> tuple[subprocess.Popen[str], int]:
    command = [sys.executable, __file__, "--serve", "--events", str(args.events), "--pause-ms", str(args.pause_ms)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    return process, int(process.stdout.readline())


def start_proxy(port: int, spool: str) -> tuple[subprocess.Popen[str], int]:
    flags = ["--upstream", f"http://127.0.0.1:{port}", "--spool", spool, "--listen", "127.0.0.1:0"]
    process = subprocess.Popen(
        [sys.executable, "-m", "farebox.cli", "proxy", *flags], stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    return process, int(process.stderr.readline().split()[1].rpartition(":")[2])


def main(args: argparse.Namespace) -> None:
    """Measure in turns; print quantiles of both, what the proxy adds, and its processor time per event."""
    server, port = start_server(args)
    with tempfile.TemporaryDirectory() as spool:
        proxy, proxy_port = start_proxy(port, spool)
        try:
            process = psutil.Process(proxy.pid)
            all_s = args.events * args.pause_ms / 1000 - RAMP_S
            asyncio.run(delays_of(proxy_port, 8, all_s))
            found: dict[str, list[int]] = {"direct": [], "proxied": []}
            before = process.cpu_times()
            began = time.monotonic()
            for _ in range(args.rounds):
                for name, target in (("direct", port), ("proxied", proxy_port)):
                    found[name] += asyncio.run(delays_of(target, args.streams, all_s))
            after, took = process.cpu_times(), time.monotonic() - began
        finally:
            proxy.terminate()
            proxy.wait()
            server.terminate()
            server.wait()
    for name, delays in found.items():
        delays.sort()
        print(f"{name:8} p50 {at(delays, 0.5):7.3f} ms   p99 {at(delays, 0.99):7.3f} ms   ({len(delays):,} events)")
    added = [at(found["proxied"], part) - at(found["direct"], part) for part in (0.5, 0.99)]
    cpu_s = after.user + after.system - before.user - before.system
    per_event_us = cpu_s / (args.rounds * args.streams * args.events) * 1e6
    rate = args.streams * 1000 / args.pause_ms
    load = psutil.getloadavg()[0]
    print(f"added    p50 {added[0]:7.3f} ms   p99 {added[1]:7.3f} ms   goal {GOAL_MS} ms at p99")
    print(f"proxy: {per_event_us:.0f} µs of processor time per event; {args.streams} streams, {rate:,.0f} events/s")
    print(f"{took:.0f} s on {psutil.cpu_count()} processors, load average {load:.1f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", type=int, default=200)
    parser.add_argument("--events", type=int, default=100)
    parser.add_argument("--pause-ms", type=float, default=50)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        asyncio.run(serve(options.events, options.pause_ms / 1000))
    else:
        main(options)
