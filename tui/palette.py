"""What the command palette finds besides Textual's commands: pages, engines, models and tenants."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, cast

from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.content import Content

from .navigation import PAGES

if TYPE_CHECKING:
    from .app import FareboxApp

MOST = 20
"""So many tenants are offered for one search."""


class Place(NamedTuple):
    """Something that can be gone to."""

    name: str
    about: str
    go: Callable[[], object]


class Places(Provider):
    """Goes to a page, an engine, a model's engine or a tenant, whose names are shown literally."""

    async def discover(self) -> AsyncIterator[DiscoveryHit]:
        """The pages, before anything is typed."""
        for place in self._pages():
            yield DiscoveryHit(place.name, place.go, help=place.about)

    async def search(self, query: str) -> Hits:
        """Whatever has the letters that were typed."""
        matcher = self.matcher(query)
        found = ((matcher.match(place.name), place) for place in self._every())
        best = sorted((pair for pair in found if pair[0] > 0), key=lambda pair: -pair[0])
        for score, place in best[:MOST]:
            yield Hit(score, Content(place.name), place.go, text=place.name, help=place.about)

    @property
    def _farebox(self) -> FareboxApp:
        return cast("FareboxApp", self.app)

    def _every(self) -> Iterator[Place]:
        yield from self._pages()
        yield from self._engines()
        snapshot = self._farebox.newest
        for tenant in dict.fromkeys(row.tenant_id for row in snapshot.tenants) if snapshot else ():
            name = self._farebox.glyphs.name(tenant)
            yield Place(f"Tenant {name}", "Open this tenant", partial(self._tenant, tenant))

    def _pages(self) -> Iterator[Place]:
        for page in PAGES:
            yield Place(f"{page.title} ({page.key})", page.summary, partial(self._farebox.action_page, page.mode))

    def _engines(self) -> Iterator[Place]:
        app = self._farebox
        for engine_id, model in dict.fromkeys((run.engine_id, run.model) for run in app.runs):
            told = f"Engine {app.glyphs.name(engine_id)}: model {app.glyphs.name(model)}"
            yield Place(told, "Watch this engine", partial(app.action_follow, engine_id))
        yield Place("Any engine", "Watch whichever engine told something last", partial(app.action_follow, ""))

    async def _tenant(self, tenant_id: str) -> None:
        app = self._farebox
        await app.switch_mode("tenants") if app.current_mode != "tenants" else None
        from .screens.tenants import TenantsPage

        if isinstance(app.screen, TenantsPage):
            app.screen.open_tenant(tenant_id)
