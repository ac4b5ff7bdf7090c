"""The terminal app: a worker polls the store, the page in front shows the newest snapshot."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import closing
from threading import Event
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from textual import on, work
from textual.app import App, SystemCommand
from textual.binding import Binding, BindingType
from textual.reactive import reactive

from .errors_told import words
from .glyphs import UNICODE, Glyphs, glyphs_for, terminal_encoding
from .line import Line
from .messages import Failed, Polled
from .navigation import FIRST, PAGES, openers, page_of
from .numbers import clock
from .palette import Places
from .screens.page import Page
from .state import State, state_file

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from textual.command import Provider
    from textual.screen import Screen

    from ..events import Run
    from .desk import Desk
    from .feed import Feed, Reader
    from .figures import Peaks
    from .replay import ReplayClock
    from .scene import Ask
    from .snapshot import Snapshot

    OpenReader = Callable[[], Reader]
    OpenFeed = Callable[[Reader], Feed]

POLL_S = 0.5
END_SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
RETRY_S = 1.0


class Options(NamedTuple):
    """How the app is started."""

    ascii_only: bool = False
    mouse: bool = True
    page: str | None = None
    """The page to open with; None: the one that was open last."""


class FareboxApp(App[None]):
    """Shows one store. It opens its reader in a worker thread, after the first paint, and again after every failure.

    `open_feed` makes the feed of an open reader, `desk` answers what bills and history ask of the whole store, and
    `wall_ns` is the time of day: tests pass their own.
    """

    TITLE = "Farebox"
    MODES: ClassVar[dict[str, str | Callable[[], Screen[None]]]] = openers()
    DEFAULT_MODE = FIRST
    COMMANDS: ClassVar[set[type[Provider] | Callable[[], type[Provider]]]] = App.COMMANDS | {Places}
    BINDINGS: ClassVar[list[BindingType]] = [
        *(Binding(page.key, f"page('{page.mode}')", page.title, tooltip=page.summary) for page in PAGES),
        Binding("tab", "turn(1)", "Next page", priority=True),
        Binding("shift+tab", "turn(-1)", "Page before", priority=True),
        Binding("p,space", "pause", "Pause", tooltip="Hold the figures; reading goes on"),
        Binding("question_mark", "help", "Help", key_display="?", tooltip="What every figure means"),
        Binding("q", "quit", "Quit", tooltip="Leave; the engine and its records go on"),
        Binding("ctrl+z", "suspend_process", "Suspend", show=False),
        Binding("less_than_sign", "speed(-1)", "Slower replay", key_display="<", show=False),
        Binding("greater_than_sign", "speed(1)", "Faster replay", key_display=">", show=False),
        Binding("n", "now", "From the replay to now", show=False),
    ]

    paused: reactive[bool] = reactive(False)

    def __init__(
        self,
        open_reader: OpenReader,
        open_feed: OpenFeed | None = None,
        glyphs: Glyphs = UNICODE,
        wall_ns: Callable[[], int] = time.time_ns,
        desk: Desk | None = None,
        state: State | None = None,
    ) -> None:
        self.state = state or State()
        vars(self)["DEFAULT_MODE"] = self.state.page  # where Textual looks for the first page
        super().__init__(css_path=page_of(self.state.page).sheets)  # with the app's: one parse instead of three
        self.glyphs = glyphs
        self.desk = desk
        self.runs: Sequence[Run] = ()
        self.newest: Snapshot | None = None
        self._wall_ns = wall_ns
        self._open_reader = open_reader
        self._open_feed = open_feed or _feed
        self._notice: Line | None = [("opening the store", "label")]
        self._failing_since_ns: int | None = None
        self._ask: Ask | None = None
        self._engine: str | None = None
        self._replay: ReplayClock | None = None
        self._source = 0
        self._stopping = False
        self._wake = Event()

    def on_mount(self) -> None:
        """Leave the terminal clean when somebody ends the process."""
        if self.state.theme in self.available_themes:
            self.theme = self.state.theme
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
        """Wake the worker, so that leaving takes no time, and remember how the app was left."""
        self._stopping = True
        self._wake.set()
        self.state.page, self.state.theme = self.current_mode, self.theme
        self.state.save()

    @work(thread=True, exclusive=True, group="store", exit_on_error=False)
    def watch_store(self) -> None:
        """Poll twice a second. Whatever goes wrong is told on the screen, and tried again."""
        while not self._stopping:
            try:
                self._poll_until_stopped()
            except Exception as error:  # a watcher that died unseen would leave old figures standing as new ones
                self.post_message(Failed(words(error), self._wall_ns()))
                self._rest(RETRY_S)

    def _poll_until_stopped(self) -> None:
        source, replay = self._source, self._replay
        with closing(self._open_reader() if replay is None else self._past(replay)) as reader:
            feed = self._open_feed(reader)
            if replay is not None:
                feed.wall_ns = feed.steady_ns = replay.now_ns
            while not self._stopping and source == self._source:
                feed.engine_id = self._engine
                snapshot = feed.poll()
                ask = self._ask
                view = ask(feed.scene) if ask and feed.scene else None
                self.post_message(Polled(snapshot, ask, view, feed.scene.runs if feed.scene else ()))
                self._rest(POLL_S)

    def _past(self, clock: ReplayClock) -> Reader:
        from .replay import ReplayReader

        if self.desk is None:
            raise LookupError("this screen shows no store of its own, so it has no past")
        return ReplayReader(self.desk.open(), clock, self._engine)

    def _rest(self, seconds: float) -> None:
        """Wait, or until somebody wants something."""
        self._wake.wait(seconds)
        if not self._stopping:
            self._wake.clear()

    @on(Polled)
    def take(self, message: Polled) -> None:
        """Keep the newest snapshot, and show it unless paused."""
        self.newest, self.runs = message.snapshot, message.runs
        self._failing_since_ns = None
        self._notice = _notice(message.snapshot)
        page = self._front()
        if page is None:
            return
        self.show_newest(page)
        if message.ask is self._ask and (not self.paused or page.view is None or page.is_asking):
            page.is_asking = False
            page.view = message.view

    @on(Failed)
    def tell(self, message: Failed) -> None:
        """Say what happened and since when; the last figures stay."""
        if self._failing_since_ns is None:
            self._failing_since_ns = message.at_ns
        since = f"{self.glyphs.signs['lost']} since {clock(self._failing_since_ns)} UTC, retrying: "
        self._notice = [(since, "bad"), (message.reason, "strong")]
        if page := self._front():
            page.notice = self._notice

    def action_pause(self) -> None:
        """Hold the figures, or go on with the newest ones."""
        self.paused = not self.paused
        if self._replay is not None:
            self._replay.stand(self.paused)
        self._show_front()
        self._wake.set()

    def action_page(self, mode: str) -> None:
        """Open a page."""
        if mode != self.current_mode:
            self.switch_mode(mode)

    def action_turn(self, by: int) -> None:
        """The next page, or the one before."""
        modes = [page.mode for page in PAGES]
        self.action_page(modes[(modes.index(self.current_mode) + by) % len(modes)])

    def action_help(self) -> None:
        """Explain the figures of the page in front."""
        from .screens.help import HelpScreen

        self.push_screen(HelpScreen(self.glyphs, self.current_mode))

    def action_toggle_theme(self) -> None:
        """Between Textual's dark and light theme."""
        self.theme = "textual-light" if self.current_theme.dark else "textual-dark"

    def action_follow(self, engine_id: str) -> None:
        """Watch a certain engine; the empty name: whichever told something last."""
        self._engine = engine_id or None
        self._wake.set()

    def start_replay(self, at_ns: int) -> None:
        """Show the past from an instant (UTC ns) on, or from where something was recorded."""
        from .replay import ReplayClock

        first_ns = min((run.started_ns for run in self.runs), default=at_ns)
        self._turn_to(ReplayClock(max(at_ns, first_ns), self._replay.speed if self._replay else 1))

    def action_speed(self, by: int) -> None:
        """Make the replay faster or slower."""
        from .replay import SPEEDS

        if self._replay is not None:
            at = SPEEDS.index(self._replay.speed) + by
            self._replay.set_speed(SPEEDS[max(0, min(at, len(SPEEDS) - 1))])
            self._show_front()

    def action_now(self) -> None:
        """Leave the replay."""
        if self._replay is not None:
            self._turn_to(None)

    def _turn_to(self, replay: ReplayClock | None) -> None:
        """Have the worker read the past, or the present again."""
        self._replay, self.paused = replay, False
        self._source += 1
        self._show_front()
        self._wake.set()

    def _show_front(self) -> None:
        if page := self._front():
            self.show_newest(page)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Tab turns pages only where no question is open."""
        return action != "turn" or isinstance(self.screen, Page)

    def get_system_commands(self, screen: Screen[None]) -> Iterable[SystemCommand]:
        """Textual's commands, and ours."""
        yield from super().get_system_commands(screen)
        yield SystemCommand("Light or dark", "Switch between the light and the dark theme", self.action_toggle_theme)
        yield SystemCommand("Pause or go on", "Hold the figures; reading goes on", self.action_pause)
        yield SystemCommand("Figures", "What every figure means", self.action_help)

    def show_newest(self, page: Page) -> None:
        """Give a page what is to be shown now. What a page held while paused, it keeps until all goes on."""
        page.paused = self.paused
        page.replay = f"replay {self._replay.speed}×" if self._replay else ""
        page.notice = self._notice
        if not self.paused or page.snapshot is None:
            page.snapshot = self.newest

    def wish(self, page: Page) -> None:
        """Have the worker make what a page in front wants, at once."""
        self._ask = page.ask()
        page.is_asking = self._ask is not None
        self._wake.set()

    def copy(self, text: str) -> None:
        """Put a line into the terminal's clipboard."""
        self.copy_to_clipboard(text)
        self.notify(self.glyphs.name(f"copied: {text}"), markup=False, timeout=2)

    def _front(self) -> Page | None:
        """The page in front, under whatever question may be open."""
        return next((screen for screen in self.screen_stack if isinstance(screen, Page)), None)


def top_app(
    path: str | Path,
    peaks: Peaks | None = None,
    options: Options | None = None,
    desk: Desk | None = None,
    state: State | None = None,
) -> FareboxApp:
    """The app on the store at `path`; `peaks` gives a GPU type's datasheet FLOP/s and bytes/s."""

    def open_reader() -> Reader:
        from ..storage.live import LiveReader

        return LiveReader(path)

    def open_feed(reader: Reader) -> Feed:
        return _feed(reader, peaks)

    encoding: str | None = getattr(sys.__stdout__, "encoding", None)
    shown = terminal_encoding(encoding, os.environ, bool(sys.flags.utf8_mode))
    remembered = state or State.load(state_file())
    chosen = options or Options()
    remembered.page = chosen.page or remembered.page
    return FareboxApp(open_reader, open_feed, glyphs_for(shown, chosen.ascii_only), desk=desk, state=remembered)


def run_top(
    path: str | Path, peaks: Peaks | None = None, options: Options | None = None, desk: Desk | None = None
) -> int:
    """Show the store at `path` until the user leaves; returns the process's exit code."""
    app = top_app(path, peaks, options, desk)
    app.run(mouse=options is None or options.mouse)
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
