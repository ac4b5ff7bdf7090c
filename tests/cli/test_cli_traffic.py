"""Traces and numbers that cannot be meant: one clear sentence each, before anything is written."""

from fractions import Fraction

import pytest

from farebox.cli.clock import utc_ns, utc_text
from farebox.cli.trace import parse_traces
from farebox.cli.traffic import factor, traffic
from farebox.errors import InputError

HEADER = "TIMESTAMP,ContextTokens,GeneratedTokens\n"


def azure(folder, *rows, name="trace_chat.csv"):
    path = folder / name
    path.write_text(HEADER + "\n".join(rows))
    return f"azure:{path}"


def test_a_mistyped_year_is_not_idled_through_minute_by_minute(tmp_path):
    trace = azure(tmp_path, "2020-05-01 10:00:00,5,1", "2024-05-01 10:00:00,5,1")
    with pytest.raises(InputError, match=r"spans 1,461 days, from request chat-1 to chat-2; the most is 366"):
        traffic(parse_traces(trace), 0, Fraction(1), None)
    assert len(traffic(parse_traces(trace), 0, Fraction(1), 1)) == 1


@pytest.mark.parametrize("stamp", ["9999-12-31 23:59:59.0", "0001-01-01 00:00:00.0", "2200-01-01 00:00:00"])
def test_a_stamp_beyond_the_calendar_names_its_line(tmp_path, stamp):
    with pytest.raises(InputError, match=r"trace_chat\.csv:2: .*not between 1970 and 2200"):
        traffic(parse_traces(azure(tmp_path, f"{stamp},5,1")), 0, Fraction(1), None)


@pytest.mark.parametrize(
    "line",
    [
        '{"timestamp": 9223372036854775807, "input_length": 5, "output_length": 1}',
        '{"timestamp": 1' + "0" * 5000 + ', "input_length": 5, "output_length": 1}',
        "[" * 100_000,
    ],
)
def test_absurd_json_names_its_line(tmp_path, line):
    path = tmp_path / "trace_chat.jsonl"
    path.write_text(line)
    with pytest.raises(InputError, match=r"trace_chat\.jsonl:1: "):
        traffic(parse_traces(f"mooncake:{path}"), 0, Fraction(1), None)


@pytest.mark.parametrize("text", ["0", "-1", "1e-9", "1e400", "nan", "inf", "1/0", "fast"])
def test_a_factor_that_cannot_be_meant_names_its_flag(text):
    with pytest.raises(InputError, match=r"^--load "):
        factor("--load", text, most=10**6)


def test_factors_are_exact():
    assert factor("--load", "0.1", most=10**6) == Fraction(1, 10)
    assert factor("--load", "1/3", most=10**6) == Fraction(1, 3)


@pytest.mark.parametrize("text", ["9999-12-31T00:00:00Z", "0001-01-01T00:00:00Z", "2026-01-01", "yesterday"])
def test_an_instant_that_cannot_be_meant_is_refused(text):
    with pytest.raises(InputError):
        utc_ns(text)


def test_instants_are_read_in_their_zone():
    assert utc_ns("2026-01-01T01:00:00+01:00") == utc_ns("2026-01-01T00:00:00Z") == 1_767_225_600 * 10**9
    assert utc_text(1_767_225_600 * 10**9) == "2026-01-01 00:00:00Z"


def test_a_folder_is_no_trace(tmp_path):
    with pytest.raises(InputError, match="is a folder; name a file"):
        parse_traces(f"azure:{tmp_path}")


def test_an_equals_sign_in_a_file_name_is_explained(tmp_path):
    file = tmp_path / "a=b.csv"
    file.write_text(HEADER)
    with pytest.raises(InputError, match="no such file"):
        parse_traces("azure:a=b.csv")
    assert parse_traces(f"azure:{file}")[0].path == file


def test_a_tenant_must_be_printable(tmp_path):
    file = tmp_path / "c.csv"
    file.write_text(HEADER)
    with pytest.raises(InputError, match="no name for a tenant"):
        parse_traces(f"azure:a\udc80b={file}")


def test_commas_in_file_names_do_not_split(tmp_path):
    file = tmp_path / "a,b.csv"
    file.write_text(HEADER)
    traces = parse_traces(f"azure:x={file},synthetic:3")
    assert [(trace.kind, trace.tenant, trace.seed) for trace in traces] == [("azure", "x", 0), ("synthetic", "", 3)]


def test_two_sources_with_one_tenant_are_refused(tmp_path):
    row = "2023-05-01 10:00:00,5,1"
    first, second = azure(tmp_path, row, name="a_chat.csv"), azure(tmp_path, row, name="b_chat.csv")
    with pytest.raises(InputError, match='both tenant "chat"'):
        traffic(parse_traces(f"{first},{second}"), 0, Fraction(1), None)
