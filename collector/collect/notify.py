"""systemd's notifications: ready, still alive, stopping. Without systemd they go nowhere.

The protocol is one datagram to the socket that `NOTIFY_SOCKET` names (sd_notify(3)).
"""

from __future__ import annotations

import contextlib
import os
import socket


def notify(message: str) -> None:
    """Tell systemd, where it listens."""
    place = os.environ.get("NOTIFY_SOCKET")
    if not place:
        return
    address = "\0" + place[1:] if place.startswith("@") else place
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.sendto(message.encode(), address)
