"""The command line through its real process."""

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from farebox.cli.app import app

FAREBOX = [sys.executable, "-m", "farebox.cli"]
ENVIRONMENT = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "FORCE_COLOR")}

Farebox = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def farebox(tmp_path: Path) -> Farebox:
    """Run `farebox …` in an empty folder, without a terminal, with text given on standard input."""

    def call(*arguments: str, check: int = 0, given: str = "") -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [*FAREBOX, *arguments],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env=ENVIRONMENT,
            input=given,
            timeout=120,
            check=False,
        )
        assert done.returncode == check, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
        assert "Traceback" not in done.stderr
        return done

    return call


@pytest.fixture
def inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Farebox:
    """The same without a process of its own: for the many ways in which a command may be called."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str, check: int = 0, given: str = "") -> subprocess.CompletedProcess[str]:
        done = CliRunner().invoke(app, arguments, input=given, prog_name="farebox", catch_exceptions=False)
        assert done.exit_code == check, f"exit {done.exit_code}\n{done.output}"
        return subprocess.CompletedProcess(arguments, done.exit_code, done.stdout, done.stderr)

    return call


@pytest.fixture
def start_farebox(tmp_path: Path):
    """Start `farebox …` and leave it running; whatever still runs at the end is killed."""
    started: list[subprocess.Popen[str]] = []

    def call(*arguments: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [*FAREBOX, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
            env=ENVIRONMENT,
            stdin=subprocess.DEVNULL,
        )
        started.append(process)
        return process

    yield call
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture
def shell(tmp_path: Path):
    """Run a shell line in which `farebox` is the command under test."""

    def call(line: str) -> subprocess.CompletedProcess[str]:
        command = f'farebox() {{ {shlex.join(FAREBOX)} "$@"; }}; {line}'
        return subprocess.run(
            ["bash", "-c", command], capture_output=True, text=True, cwd=tmp_path, env=ENVIRONMENT, check=False
        )

    return call


@pytest.fixture
def azure_csv():
    """Write a trace as Azure publishes it: CRLF, seven-digit fractions, no newline at the end."""
    return write_azure_csv


def write_azure_csv(path: Path, rows: list[tuple[str, int, int]], newline: str = "\r\n", end: bool = False) -> Path:
    lines = ["TIMESTAMP,ContextTokens,GeneratedTokens", *(f"{at},{prompt},{output}" for at, prompt, output in rows)]
    path.write_bytes((newline.join(lines) + (newline if end else "")).encode())
    return path


@pytest.fixture(scope="session")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store without rates that the embedded engine recorded; nobody may change it."""
    store = tmp_path_factory.mktemp("recorded") / "store"
    run = ("run", "--trace", "synthetic:8", "--limit", "60", "--gpu", "h100", "--model", "llama-3-8b")
    subprocess.run([*FAREBOX, *run, "--store", str(store)], check=True, capture_output=True, env=ENVIRONMENT)
    return store


@pytest.fixture
def store(tmp_path: Path, recorded: Path) -> Path:
    """`store` in the folder where commands run: tenants summariser, chat and code in the first minute of 2026."""
    return Path(shutil.copytree(recorded, tmp_path / "store"))


@pytest.fixture
def small_trace(tmp_path: Path) -> Path:
    rows = [(f"2023-11-16 18:17:{i // 4:02}.{i % 4}799600", 40 + 30 * i, 3 + i % 7) for i in range(40)]
    return write_azure_csv(tmp_path / "AzureLLMInferenceTrace_chat.csv", rows)
