"""The snapshot without a terminal."""

from __future__ import annotations

import json
from decimal import Decimal

from rich.cells import cell_len

from farebox.tui.glyphs import ASCII
from farebox.tui.plain import plain_snapshot, to_json

NAMES = ("[/]", "[red]x[/red]", "[@click=app.quit]x[/]", "evil\x1b[31m")


def test_a_page_in_80_columns_without_escapes(make, told):
    text = plain_snapshot(make.feed(told).poll())
    assert text.endswith("\n")
    assert max(map(cell_len, text.splitlines())) <= 80
    assert "\x1b" not in text
    for words in ("$4.29/h = riders", "/1k tokens  alone ", "memory-bound", "idle", "voice (fast)", "tenant, last"):
        assert words in text


def test_the_shown_amounts_add_up_to_the_shown_price(make, told):
    text = plain_snapshot(make.feed(told).poll())
    head, *table = text[text.index("tenant, last") :].splitlines()
    for title, total in (("$/h", "4.29"), ("GPU %", "100.0")):
        end = head.index(title) + len(title)
        assert sum(Decimal(line[end - 5 : end]) for line in table) == Decimal(total)
    idle = next(line.split()[-1] for line in table if line.startswith("idle"))
    assert f"idle {idle} +" in text


def test_ascii_only(make, told):
    assert plain_snapshot(make.feed(told).poll(), ASCII).isascii()


def test_a_store_without_a_run():
    assert plain_snapshot(None) == "this store holds no run yet\n"
    assert to_json(None) == "null"


def test_a_run_without_a_step_tells_what_is_unknown(make, store):
    store.run_list = [make.run(step_model=None, heartbeat_ns=make.START + make.S)]
    text = plain_snapshot(make.feed(store).poll())
    assert "KV cache  –" in text
    assert "no rate for H100" in text
    assert "n/a: the run has no step model" in text
    assert "no step ran in this window" in text


def test_names_are_shown_as_they_are(make):
    store = make.story(5, tuple((name, "standard", 2) for name in NAMES))
    store.run_list = [store.run_list[0]._replace(model="[bold]m", mode="a\nb")]
    text = plain_snapshot(make.feed(store).poll())
    for name in (*NAMES[:3], r"evil\x1b[31m", "[bold]m", r"a\nb"):
        assert name in text


def test_json_carries_exact_integers_and_decimals(make, told):
    snapshot = make.feed(told).poll()
    data = json.loads(to_json(snapshot))
    assert data["accounts"]["riders"] == snapshot.accounts.riders
    assert Decimal(data["tenants"][0]["per_1k"]) == snapshot.tenants[0].per_1k
    assert data["money"]["total"] == 4_290_000
    assert data["engine"]["state"] == "live"
