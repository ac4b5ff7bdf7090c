"""The terminal app: a worker polls the store, the pages show the newest snapshot."""

from __future__ import annotations

import asyncio
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import dataclass
from threading import Event
from typing import TYPE_CHECKING, ClassVar

from textual import on, work
from textual.app import App, SystemCommand
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.reactive import reactive

from .glyphs import UNICODE, Glyphs, glyphs_for
from .line import Line
from .numbers import clock
from .screens.live import LivePage
from .screens.page import Page

if TYPE_CHECKING:
    from pathlib import Path

    from textual.screen import Screen

    from .feed import Feed, Reader
    from .figures import Peaks
    from .snapshot import Snapshot

    OpenReader = Callable[[], Reader]
    OpenFeed = Callable[[Reader], Feed]

POLL_S = 0.5
END_SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
RETRY_S = 1.0


@dataclass
class Polled(Message):
    """A new snapshot; None while the store holds no run. Only the newest one waiting is worth handling."""

    snapshot: Snapshot | None

    def can_replace(self, message: Message) -> bool:
        """A newer snapshot replaces an older one that nobody has looked at yet."""
        return isinstance(message, Polled)


@dataclass
class Failed(Message):
    """The store could not be read."""

    reason: str
    at_ns: int

    def can_replace(self, message: Message) -> bool:
        """The newest reason is the one to tell."""
        return isinstance(message, Failed)


class FareboxApp(App[None]):
    """Shows one store. It opens its reader in a worker thread, after the first paint, and again after every failure.

    `open_feed` makes the feed of an open reader, and `wall_ns` is the time of day: tests pass their own.
    """

    TITLE = "Farebox"
    MODES: ClassVar[dict[str, str | Callable[[], Screen[None]]]] = {"live": LivePage}
    DEFAULT_MODE = "live"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit", "Quit", tooltip="Leave; the engine and its records go on"),
        Binding("ctrl+z", "suspend_process", "Suspend", show=False),
        Binding("p", "pause", "Pause", tooltip="Hold the figures; reading goes on"),
        Binding("question_mark", "help", "Help", key_display="?", tooltip="What every figure means"),
    ]

    paused: reactive[bool] = reactive(False)

    def __init__(
        self,
        open_reader: OpenReader,
        open_feed: OpenFeed | None = None,
        glyphs: Glyphs = UNICODE,
        wall_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        super().__init__()
        self.glyphs = glyphs
        self._wall_ns = wall_ns
        self._open_reader = open_reader
        self._open_feed = open_feed
        self._newest: Snapshot | None = None
        self._shown: Snapshot | None = None
        self._notice: Line | None = [("opening the store", "label")]
        self._failing_since_ns: int | None = None
        self._stopping = Event()

    def on_mount(self) -> None:
        """Leave the terminal clean when somebody ends the process."""
        if threading.current_thread() is not threading.main_thread():
            return
        loop = asyncio.get_running_loop()
        for number in END_SIGNALS:
            loop.add_signal_handler(number, self.exit, None, 128 + number)

    def on_ready(self) -> None:
        """Paint first, read then."""
        self.set_class(self.glyphs.ascii_only, "-ascii")
        self.call_after_refresh(self.watch_store)

    def on_unmount(self) -> None:
        """Wake the worker, so that leaving takes no time."""
        self._stopping.set()

    @work(thread=True, exclusive=True, group="store", exit_on_error=False)
    def watch_store(self) -> None:
        """Poll twice a second. Whatever goes wrong is told on the screen, and tried again."""
        while not self._stopping.is_set():
            try:
                self._poll_until_stopped()
            except Exception as error:  # a watcher that died unseen would leave old figures standing as new ones
                self.post_message(Failed(_words(error), self._wall_ns()))
                self._stopping.wait(RETRY_S)

    def _poll_until_stopped(self) -> None:
        with closing(self._open_reader()) as reader:
            feed = self._open_feed(reader) if self._open_feed else _feed(reader)
            while not self._stopping.is_set():
                self.post_message(Polled(feed.poll()))
                self._stopping.wait(POLL_S)

    @on(Polled)
    def take(self, message: Polled) -> None:
        """Keep the newest snapshot, and show it unless paused."""
        self._newest = message.snapshot
        self._failing_since_ns = None
        self._notice = _notice(message.snapshot)
        if not self.paused:
            self._shown = self._newest
        self._show_everywhere()

    @on(Failed)
    def tell(self, message: Failed) -> None:
        """Say what happened and since when; the last figures stay."""
        if self._failing_since_ns is None:
            self._failing_since_ns = message.at_ns
        since = f"{self.glyphs.signs['lost']} since {clock(self._failing_since_ns)} UTC, retrying: "
        self._notice = [(since, "bad"), (message.reason, "strong")]
        self._show_everywhere()

    def action_pause(self) -> None:
        """Hold the figures, or go on with the newest ones."""
        self.paused = not self.paused
        if not self.paused:
            self._shown = self._newest
        self._show_everywhere()

    def action_help(self) -> None:
        """Explain the figures."""
        from .screens.help import HelpScreen

        self.push_screen(HelpScreen(self.glyphs))

    def action_toggle_theme(self) -> None:
        """Between Textual's dark and light theme."""
        self.theme = "textual-light" if self.current_theme.dark else "textual-dark"

    def get_system_commands(self, screen: Screen[None]) -> Iterable[SystemCommand]:
        """Textual's commands, and ours."""
        yield from super().get_system_commands(screen)
        yield SystemCommand("Light or dark", "Switch between the light and the dark theme", self.action_toggle_theme)
        yield SystemCommand("Pause or go on", "Hold the figures; reading goes on", self.action_pause)
        yield SystemCommand("Figures", "What every figure means", self.action_help)

    def show_newest(self, page: Page) -> None:
        """Give a page what is to be shown now."""
        page.snapshot = self._shown
        page.paused = self.paused
        page.notice = self._notice

    def _show_everywhere(self) -> None:
        for screen in self.screen_stack:
            if isinstance(screen, Page):
                self.show_newest(screen)


def top_app(path: str | Path, peaks: Peaks | None = None, ascii_only: bool = False) -> FareboxApp:
    """The app on the store at `path`; `peaks` gives a GPU type's datasheet FLOP/s and bytes/s."""

    def open_reader() -> Reader:
        from ..storage.live import LiveReader

        return LiveReader(path)

    def open_feed(reader: Reader) -> Feed:
        return _feed(reader, peaks)

    encoding: str | None = getattr(sys.__stdout__, "encoding", None)
    return FareboxApp(open_reader, open_feed, glyphs_for(encoding, ascii_only))


def run_top(path: str | Path, peaks: Peaks | None = None, ascii_only: bool = False) -> int:
    """Show the store at `path` until the user leaves; returns the process's exit code."""
    app = top_app(path, peaks, ascii_only)
    app.run()
    return app.return_code or 0


def _feed(reader: Reader, peaks: Peaks | None = None) -> Feed:
    """A feed; what it imports is for the worker, after the first paint."""
    from .feed import Feed

    return Feed(reader, peaks)


def _notice(snapshot: Snapshot | None) -> Line | None:
    """What there is to tell beside the figures."""
    if snapshot is None:
        return [("this store holds no run yet; waiting for one", "label")]
    return [(snapshot.trouble, "bad")] if snapshot.trouble else None


def _words(error: Exception) -> str:
    """An error for people: a store's own words, or the kind of error and what it says."""
    from ..storage.errors import StoreError

    return str(error) if isinstance(error, StoreError) else f"{type(error).__name__}: {error}"
