"""NVIDIA's driver as a script: the real binding calls a stub library that is built here."""

import ctypes
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

sys.path.insert(0, str(Path(__file__).parent))

from nvml_script import SECOND_NS, START_NS, lines


@pytest.fixture(scope="session")
def stub(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the stub `libnvidia-ml.so.1`."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler: the stub NVML library cannot be built")
    target = tmp_path_factory.mktemp("nvml") / "libnvidia-ml.so.1"
    source = Path(__file__).with_name("stub.c")
    flags = ["-shared", "-fPIC", "-O1", "-Wl,-soname,libnvidia-ml.so.1"]
    subprocess.run([compiler, *flags, str(source), "-o", str(target)], check=True)
    return target.parent


@pytest.fixture
def script(stub: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[dict[str, Any]], Path]:
    """Say what the driver answers from now on."""
    path = tmp_path / "script.txt"
    monkeypatch.setenv("FAREBOX_NVML_SCRIPT", str(path))
    ctypes.CDLL(str(stub / "libnvidia-ml.so.1"))  # whoever loads that name later gets this one

    def say(poll: dict[str, Any]) -> Path:
        path.write_text(lines(poll), "utf-8")
        return path

    return say


@pytest.fixture
def watch(script: Callable[[dict[str, Any]], Path]):
    """A watch whose driver answers what it is told to."""
    from farebox.collector.nvml.library import Memory
    from farebox.collector.nvml.watch import GpuWatch

    class Scripted:
        def __init__(self) -> None:
            self.memory: Memory | None = None
            self.watch = GpuWatch("node-7", lambda: self.memory)

        def host(self, total_kb: int, available_kb: int) -> None:
            self.memory = Memory((total_kb - available_kb) * 1024, total_kb * 1024)

        def poll(self, told: dict[str, Any], second: float = 0):
            script(told)
            return self.watch.poll(START_NS + int(second * SECOND_NS))

        def all(self, told: list[dict[str, Any]]):
            return [self.poll(one, one["t"]) for one in told]

    scripted = Scripted()
    yield scripted
    scripted.watch.close()


@pytest.fixture
def command(script: Callable[[dict[str, Any]], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Run `farebox …` in this process, in an empty folder, where the driver answers as told."""
    from farebox.cli.app import app

    monkeypatch.chdir(tmp_path)

    def call(told: dict[str, Any], *arguments: str) -> Result:
        script(told)
        return CliRunner().invoke(app, arguments, prog_name="farebox")

    return call


@pytest.fixture
def environment(stub: Path, tmp_path: Path):
    """Variables for a process of its own whose driver answers as told (None: there is no NVML library)."""

    def call(told: dict[str, Any] | None) -> dict[str, str]:
        (tmp_path / "told.txt").write_text(lines(told or {}), "utf-8")
        library = {"LD_LIBRARY_PATH": "" if told is None else str(stub)}
        return os.environ | library | {"FAREBOX_NVML_SCRIPT": str(tmp_path / "told.txt")}

    return call
