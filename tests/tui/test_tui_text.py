"""Names, numbers, money and drawings as text."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties import tries
from rich.cells import cell_len

from farebox.tui import money, numbers
from farebox.tui.glyphs import ASCII, UNICODE, fit, glyphs_for, pad
from farebox.tui.line import exactly, flow, plain, spread, width_of
from farebox.tui.literal import literal
from farebox.tui.widgets.bar import bar
from farebox.tui.widgets.timeline import timeline


@pytest.mark.parametrize(
    "name", ["[/]", "[red]x[/red]", "[@click=app.quit]x[/]", "model[int4]", "größe 東京 🚌", " a "]
)
def test_what_can_be_seen_stays_as_it_is(name):
    assert literal(name) == name


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("a\x1b[31mb", r"a\x1b[31mb"),
        ("a\nb\tc", r"a\nb\tc"),
        ("\u202eevil", r"\u202eevil"),
        ("x\x7f\u200b", r"x\x7f\u200b"),
    ],
)
def test_what_cannot_be_seen_is_spelled_out(name, shown):
    assert literal(name) == shown


@tries(40)
@given(st.text(max_size=20))
def test_a_literal_never_carries_control_characters(text):
    assert all(c.isprintable() or c.isspace() for c in literal(text))
    assert "\x1b" not in literal(text)
    assert literal(text, ascii_only=True).isascii()


def test_the_glyphs_follow_the_encoding():
    assert glyphs_for("utf-8") is UNICODE
    assert glyphs_for("UTF8") is UNICODE
    assert glyphs_for("iso-8859-1") is ASCII
    assert glyphs_for(None) is ASCII
    assert glyphs_for("utf-8", ascii_only=True) is ASCII


@given(st.text(max_size=30), st.integers(0, 20))
def test_a_name_never_takes_more_cells_than_it_has(name, width):
    assert cell_len(fit(literal(name), width, "…")) <= width


def test_wide_characters_count_twice():
    assert fit("東京都庁", 5, "…") == "東京…"
    assert pad("東京", 6) == "東京  "
    assert pad("東京", 6, right=True) == "  東京"


@pytest.mark.parametrize(
    ("part", "text"), [(None, "–"), (0, "0 %"), (0.001, "<1 %"), (0.271, "27 %"), (1, "100 %"), (-0.12, "-12 %")]
)
def test_percent(part, text):
    assert numbers.percent(part) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (0.4, "0.4"), (61, "61"), (9999, "9999"), (13_412, "13.4k"), (1_250_000, "1.2M"), (340_000, "340k")],
)
def test_counts_keep_to_five_characters(value, text):
    assert numbers.count(value) == text
    assert len(numbers.count(value)) <= 5


def test_times():
    assert [numbers.millis(ns) for ns in (None, 1_500_000, 18_400_000, 610_000_000)] == ["–", "1.50", "18.4", "610"]
    assert [numbers.seconds(s * 10**9) for s in (4, 130, 9000)] == ["4 s", "2 min", "2 h"]
    assert numbers.clock(1_767_225_600 * 10**9 + 999) == "00:00:00"
    assert numbers.per_second(3, 0) == "–"


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "–"), ("0", "0"), ("0.000107", "0.107"), ("0.0014", "1.40"), ("0.0123", "12.3"), ("0.9999", "1000")],
)
def test_money_per_1k_has_three_digits(value, text):
    assert money.figure(None if value is None else Decimal(value), milli=True) == text


def test_too_little_to_show_is_not_shown_as_nothing():
    assert money.figure(Decimal("0.0000001"), milli=True) == "<.001"


@tries(50)
@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=20), st.integers(0, 6))
def test_rounded_amounts_add_up(amounts, places):
    grain = 10 ** (6 - places)
    units = money.rounded(amounts, places)
    assert abs(sum(units) * grain - sum(amounts)) * 2 <= grain
    assert all(abs(u * grain - a) < grain for u, a in zip(units, amounts, strict=True))


def test_prices():
    assert money.hourly_micro(Decimal("4.29"), 8) == 34_320_000
    assert money.text(429, 2) == "4.29"
    assert (money.decimals(4_290_000), money.decimals(999_999)) == (2, 4)
    assert money.sign("USD") == "$"
    assert money.sign("CHF") == "CHF "


def test_a_timeline_tells_unknown_zero_and_little_apart():
    assert timeline([None, 0.0, 0.01, 4.0, 8.0], 5, 1, 8.0, UNICODE) == [" ▁▂▄█"]
    assert timeline([None, 0.0, 0.01, 4.0, 8.0], 5, 1, 8.0, ASCII) == [" _.:#"]


def test_a_tall_timeline_fills_from_below():
    assert timeline([8.0, 4.0, 0.0], 3, 2, 8.0, UNICODE) == ["█  ", "██▁"]


def test_a_timeline_shows_the_newest_at_the_right():
    assert timeline([8.0, 0.0, 8.0], 2, 1, 8.0, UNICODE) == ["▁█"]
    assert timeline([8.0], 4, 1, 8.0, UNICODE) == ["   █"]


@given(st.lists(st.none() | st.floats(0, 1e9), max_size=30), st.integers(1, 40), st.integers(1, 5), st.floats(0, 1e9))
def test_a_timeline_has_the_size_it_was_asked_for(values, width, height, top):
    rows = timeline(values, width, height, top, UNICODE)
    assert [len(row) for row in rows] == [width] * height


def test_bars():
    assert bar(0.5, 4, UNICODE) == ("━━", "──")
    assert bar(0.0, 2, UNICODE) == ("", "──")
    assert bar(0.0001, 2, UNICODE) == ("╸", "─")
    assert bar(7.0, 2, UNICODE) == ("━━", "")
    assert bar(0.0001, 3, ASCII) == ("#", "..")


def test_lines_are_cut_and_filled():
    line = [("abc", "label"), ("東京", "strong")]
    assert plain(exactly(line, 9)) == "abc東京  "
    assert plain(exactly(line, 6)) == "abc東 "
    assert plain(exactly(line, 0)) == ""
    assert plain(spread(line, [("R", "")], 10)) == "abc東京  R"


@given(st.lists(st.text("ab", min_size=1, max_size=12), max_size=8), st.integers(14, 60))
def test_items_wrap_within_the_width(items, width):
    lines = flow("x", [[(item, "")] for item in items], width, 2)
    assert all(width_of(line) <= width for line in lines)
    assert "".join("".join(plain(line).split()) for line in lines) == "x" + "".join(items)
