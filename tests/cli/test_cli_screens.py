"""`farebox top` and `demo` without a terminal, help, and broken pipes."""

import json

import pytest

from farebox.cli.app import app


@pytest.mark.usefixtures("store")
def test_top_without_a_terminal_prints_one_plain_snapshot(farebox, inside):
    printed = farebox("top", "store").stdout
    assert "seats" in printed and "idle" in printed and "\x1b" not in printed
    assert json.loads(inside("top", "store", "--once", "--json").stdout)


def test_demo_without_a_terminal_prints_a_summary_of_all_tenants(farebox, inside):
    printed = farebox("demo", "--store", "kept").stdout
    for tenant in ("support-chat", "code-completion", "nightly-summariser", "voice"):
        assert tenant in printed
    assert "\x1b" not in printed
    assert "4.29" in inside("report", "kept").stdout


def test_every_command_explains_itself_with_examples(farebox, inside):
    listed = farebox("--help").stdout
    for name in app.commands:
        assert name in listed
        assert "Examples" in inside(name, "--help").stdout


def test_the_version_is_told(farebox):
    from farebox import __version__

    assert farebox("--version").stdout.strip() == f"farebox, version {__version__}"


@pytest.mark.usefixtures("store")
@pytest.mark.parametrize("form", ["csv", "table"])
def test_a_closed_pipe_is_no_error(shell, form):
    assert shell(f"farebox report store --format {form} | true").stderr == ""
