"""`farebox top` and `demo` on a real terminal: whatever ends them, the terminal is left clean."""

import os
import pty
import select
import signal
import subprocess
import sys
import time

import pytest

FAREBOX = [sys.executable, "-m", "farebox.cli"]
ALTERNATE_SCREEN, MAIN_SCREEN = b"\x1b[?1049h", b"\x1b[?1049l"
MOUSE_OFF, CURSOR_ON = b"\x1b[?1000l", b"\x1b[?25h"


class Terminal:
    """A process on a pseudo-terminal of its own, 100 columns by 30 rows."""

    def __init__(self, command, cwd):
        self.main, child = pty.openpty()
        os.environ.setdefault("TERM", "xterm-256color")
        import fcntl
        import struct
        import termios

        fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
        environment = os.environ | {"TERM": "xterm-256color", "XDG_STATE_HOME": str(cwd)}
        self.process = subprocess.Popen(
            command, stdin=child, stdout=child, stderr=child, cwd=cwd, env=environment, start_new_session=True
        )
        os.close(child)
        self.seen = b""

    def wait_for(self, text, patience_s=40):
        give_up = time.monotonic() + patience_s
        while text not in self.seen:
            assert time.monotonic() < give_up, f"{text!r} did not appear in {self.seen[-2000:]!r}"
            if not self._read(0.5) and self.process.poll() is not None:
                break
        assert text in self.seen

    def end(self, patience_s=20):
        give_up = time.monotonic() + patience_s
        while self.process.poll() is None and time.monotonic() < give_up:
            self._read(0.2)
        while self._read(0.2):
            pass
        return self.process.wait(1)

    def _read(self, wait_s):
        ready, _, _ = select.select([self.main], [], [], wait_s)
        try:
            data = os.read(self.main, 65536) if ready else b""
        except OSError:  # the other side has gone
            data = b""
        self.seen += data
        return data


@pytest.fixture
def terminal(tmp_path):
    opened = []

    def open_terminal(*arguments):
        opened.append(Terminal([*FAREBOX, *arguments], tmp_path))
        return opened[-1]

    yield open_terminal
    for one in opened:
        one.process.kill()
        one.process.wait()
        os.close(one.main)


def assert_left_clean(seen):
    assert seen.rindex(MAIN_SCREEN) > seen.rindex(ALTERNATE_SCREEN)
    assert MOUSE_OFF in seen and CURSOR_ON in seen


@pytest.mark.usefixtures("store")
def test_q_leaves(terminal):
    screen = terminal("top", "store")
    screen.wait_for(b"tenant")
    os.write(screen.main, b"q")
    assert screen.end() == 0
    assert_left_clean(screen.seen)


@pytest.mark.usefixtures("store")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
def test_a_signal_leaves_the_terminal_clean(terminal, number):
    screen = terminal("top", "store")
    screen.wait_for(b"tenant")
    screen.process.send_signal(number)
    assert screen.end() == 128 + number
    assert_left_clean(screen.seen)


def test_a_killed_demo_leaves_neither_an_engine_nor_a_folder(terminal, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    screen = terminal("demo")
    screen.wait_for(b"support-chat", patience_s=60)
    screen.process.terminate()
    assert screen.end() in (0, 128 + signal.SIGTERM)
    assert_left_clean(screen.seen)
    assert list(tmp_path.glob("farebox-demo-*")) == []
