"""`farebox top` and `demo` without a terminal, help, and broken pipes."""

import json

import pytest

from farebox.cli.app import app

FAST = ("--gpu", "h100", "--model", "llama-3-8b")


def test_top_without_a_terminal_prints_one_plain_snapshot(farebox):
    farebox("run", "--trace", "synthetic:2", "--limit", "60", *FAST, "--rate", "4.29", "--store", "store")
    printed = farebox("top", "store").stdout
    assert "seats" in printed and "idle" in printed and "\x1b" not in printed
    assert json.loads(farebox("top", "store", "--once", "--json").stdout)


def test_demo_without_a_terminal_prints_a_summary_of_all_tenants(farebox):
    printed = farebox("demo", "--store", "kept").stdout
    for tenant in ("support-chat", "code-completion", "nightly-summariser", "voice"):
        assert tenant in printed
    assert "\x1b" not in printed
    assert "4.29" in farebox("report", "kept").stdout


def test_every_command_explains_itself_with_examples(farebox):
    listed = farebox("--help").stdout
    for name in app.commands:
        assert name in listed
        assert "Examples" in farebox(name, "--help").stdout


def test_the_version_is_told(farebox):
    from farebox import __version__

    assert farebox("--version").stdout.strip() == f"farebox, version {__version__}"


@pytest.mark.parametrize("form", ["csv", "table"])
def test_a_closed_pipe_is_no_error(farebox, shell, form):
    farebox("run", "--trace", "synthetic:2", "--limit", "30", *FAST, "--store", "store")
    assert shell(f"farebox report store --format {form} | true").stderr == ""
