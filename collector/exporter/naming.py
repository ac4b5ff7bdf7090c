"""Names of tenants on the page: so many, first come first named, so that no series ever falls."""

from __future__ import annotations

OTHER = "other"


class Naming:
    """Gives a tenant its own name while there is room, and `other` once there is none; for good, until a restart."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._named: set[str] = set()

    def name(self, tenant_id: str) -> str:
        """The label of a tenant; the empty tenant, which is nobody, stays empty."""
        if not tenant_id or tenant_id in self._named:
            return tenant_id
        if len(self._named) < self._most:
            self._named.add(tenant_id)
            return tenant_id
        return OTHER
