"""The parser: good lines survive whatever stands beside them, and what is no number is nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties import tries
from scrape_pages import case

from farebox.collector.scrape import page as module
from farebox.collector.scrape.page import NotAPageError, Sample, read_line, read_page

names = st.from_regex(r"[a-zA-Z_:][a-zA-Z0-9_:]{0,12}", fullmatch=True)
labels = st.dictionaries(st.from_regex(r"[a-zA-Z_][a-zA-Z0-9_]{0,6}", fullmatch=True), st.text(max_size=12), max_size=3)


def written(name: str, told: dict[str, str], value: float) -> str:
    def escaped(text: str) -> str:
        return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")

    inside = ",".join(f'{label}="{escaped(text)}"' for label, text in told.items())
    return f"{name}{{{inside}}} {value!r}" if told else f"{name} {value!r}"


@given(st.text(max_size=400))
def test_any_text_is_read_or_refused_in_words(text: str):
    try:
        page = read_page(text)
    except NotAPageError as error:
        assert str(error)
    else:
        assert all(s.value is None or abs(s.value) < float("inf") for ss in page.samples.values() for s in ss)


@tries(60)
@given(
    st.lists(st.tuples(names, labels, st.floats(allow_nan=False, allow_infinity=False)), max_size=6),
    st.lists(
        st.text(st.characters(exclude_characters="\n"), max_size=30).filter(lambda t: read_line(t.strip()) is None)
    ),
)
def test_good_lines_survive_bad_ones(good, bad):
    first = {}
    for name, told, value in good:
        first.setdefault((name, frozenset(told.items())), (name, told, value))
    kept = [f"# between\n{written(*line)}" for line in first.values()]
    text = "\n".join(["ok 1", *(line for pair in zip(kept, [*bad, *[""] * len(kept)], strict=False) for line in pair)])
    page = read_page(text)
    for name, told, value in first.values():
        assert Sample(told, value) in page.samples[name]


def test_no_number_is_nothing_and_good_samples_stay():  # B11
    page = read_page(case("B11.prom"))
    assert page.get("llamacpp:tokens_predicted_total") == [({}, 5400.0)]
    odd = ("llamacpp:n_busy_slots_per_decode", "a", "b", "c", "d_total")
    assert [page.get(name)[0].value for name in odd] == [None] * 5
    assert page.bad_lines == 0


def test_a_bad_line_loses_itself_and_is_named():  # B13
    page = read_page(case("B13.prom"))
    assert [s.labels["model_name"] for s in page.get("vllm:prompt_tokens_total")] == ["ok-1", "ok-2", "ok-3"]
    assert [line.number for line in page.bad] == [3, 5, 6, 7, 8]
    assert page.trouble == "5 unreadable lines were left out, the first is line 3"


def test_a_label_may_hold_a_printed_dict():  # B15
    buckets = read_page(case("B15.prom")).get("tgi_batch_inference_duration_bucket")
    assert [(s.labels["le"], s.labels["method"], s.value) for s in buckets][-1] == (
        "+Inf",
        "{'method': 'prefill'}",
        215,
    )


def test_equal_lines_count_once_and_unequal_ones_not_at_all():  # B35
    page = read_page(case("B35.prom"))
    assert page.get("vllm:prompt_tokens_total") == [({"model_name": "m"}, 900.0)]
    assert page.get("http_requests_total") == []
    assert page.trouble == "http_requests_total is on the page twice with different values"


def test_a_page_in_a_json_string_is_unwrapped():  # B10
    page = read_page(case("B10.body"))
    assert page.was_json
    assert page.get("llamacpp:prompt_tokens_total") == [({}, 1200.0)]


@pytest.mark.parametrize("text", ["<html><body>hello</body></html>", '[{"iter": 1}]', '{"detail":"Not Found"}', '"no'])
def test_what_is_no_page_is_said(text: str):
    with pytest.raises(NotAPageError, match="metrics page"):
        read_page(text)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('m_bucket{le="0.1"} 8 1520879607.789 # {trace_id="a}b"} 0.05', ("m_bucket", Sample({"le": "0.1"}, 8.0))),
        ("m 1 1395066363000", ("m", Sample({}, 1.0))),
        ('m{a="x\\"y\\\\z\\nw",} 2', ("m", Sample({"a": 'x"y\\z\nw'}, 2.0))),
        ("m{} -.5e3", ("m", Sample({}, -500.0))),
        ("m 1_000", None),
        ("m 0x10", None),
        ('m{a="1" b="2"} 1', None),
        ("m", None),
    ],
)
def test_lines_of_both_formats(line: str, expected):
    for _ in range(2):  # a series is kept when it was read once
        found = read_line(line)
        assert (found and (found[0].name, Sample(found[0].labels, found[1]))) == expected


def test_a_page_ends_where_it_says_so():
    assert list(read_page("a 1\n# EOF\nb 2\n").samples) == ["a"]


def test_a_page_of_too_many_lines_is_refused(monkeypatch):
    monkeypatch.setattr(module, "MOST_LINES", 3)
    with pytest.raises(NotAPageError, match="more than 3 lines"):
        read_page("a 1\n" * 4)
