"""`farebox serve` scraped as any other engine: what its page said is what it counted itself."""

import asyncio

from farebox.collector.scrape.fetch import Target
from farebox.collector.scrape.setup import Setup
from farebox.collector.scrape.source import ScrapeSource
from farebox.collector.scrape.split import Usage
from farebox.collector.scraped import ScrapeRecorder
from farebox.events import LEDGER
from farebox.storage.store import create_store

S = 1_000_000_000


async def test_the_scraped_books_hold_what_the_engine_counted(serve, tmp_path):
    server = await serve()
    told: list[Usage] = []
    target, setup = Target(f"http://127.0.0.1:{server.port}"), Setup("served", gpu="h100", gpus=1, max_num_seqs=64)

    def usage(_until_ns: int) -> list[Usage]:
        taken, told[:] = list(told), []
        return taken

    source = ScrapeSource(target, setup, period_s=1, usage=usage)
    looks = [await asyncio.to_thread(source.poll, 10**18, 0)]
    for at, tenant, tokens in ((1, "a", 30), (2, "b", 12), (3, "a", 7)):
        answer = await server.client().completions.create(model="tiny", prompt=[1] * 50, max_tokens=tokens)
        assert answer.usage is not None
        told.append(
            Usage("served", tenant, "standard", 0, answer.usage.prompt_tokens, 0, answer.usage.completion_tokens)
        )
        looks.append(await asyncio.to_thread(source.poll, 10**18 + at * S, at * S))
    source.close()
    with create_store(tmp_path / "store") as store:
        recorder = ScrapeRecorder(store)
        for look in looks:
            recorder.record(look)
        ledger = store.read(LEDGER).to_pylist()
    booked = {
        tenant: [
            sum(line[name] for line in ledger if line["tenant_id"] == tenant)
            for name in ("prompt_tokens", "output_tokens")
        ]
        for tenant in ("a", "b")
    }
    assert booked == {"a": [100, 37], "b": [50, 12]}
    served = server.told
    assert sum(tokens for _, tokens in booked.values()) == sum(step.output_tokens for step in served.steps)
    assert sum(prompt for prompt, _ in booked.values()) == sum(s.prefill_tokens + s.cached_tokens for s in served.steps)
    assert sum(line["gpu_ns"] for line in ledger) == 3 * S
    assert looks[0].run is not None
    assert looks[0].run.mode == "farebox serve"
    assert looks[0].run.model == "tiny"
