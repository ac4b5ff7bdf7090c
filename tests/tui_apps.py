"""Apps that the tests of the screens start."""

from functools import partial

from farebox.cli.desk import StoreDesk
from farebox.storage.live import LiveReader
from farebox.tui.app import FareboxApp
from farebox.tui.archived import fold_archived
from farebox.tui.feed import Feed


def on_store(path, **options) -> FareboxApp:
    """The app on a store whose archive is folded in this process, which has Arrow anyway."""
    return FareboxApp(
        lambda: LiveReader(path), partial(Feed, fold_archived=fold_archived), desk=StoreDesk(path), **options
    )
