"""Which bodies are read and answered, and which one gives way to a new one."""

from __future__ import annotations

from typing import Generic, Protocol, TypeVar


class Sender(Protocol):
    """Whom a body comes from."""

    peer: str


S = TypeVar("S", bound=Sender)


class Bodies(Generic[S]):
    """The bodies of a listener, which take so many bytes together.

    It guarantees that a client that announces many bodies and does not send them displaces only
    its own, as long as it has more than anybody else; a body that has come is never displaced.
    """

    def __init__(self, most: int) -> None:
        """Have none yet; they may take so many bytes."""
        self._most = most
        self._total = 0
        self._sizes: dict[S, int] = {}
        self._coming: dict[str, dict[S, int]] = {}  # By peer; of each the oldest first.

    def is_full(self, size: int) -> bool:
        """Whether one has to give way before there is room for so many bytes."""
        return self._total + size > self._most

    def next_to_go(self) -> S | None:
        """Return which one gives way; None if all of them have come."""
        if not self._coming:
            return None
        largest = max(self._coming.values(), key=lambda of_peer: sum(of_peer.values()))
        return next(iter(largest))

    def add(self, sender: S, size: int) -> None:
        """Note that a body comes."""
        self._sizes[sender] = size
        self._total += size
        self._coming.setdefault(sender.peer, {})[sender] = size

    def came(self, sender: S) -> None:
        """Note that all of it has come; may be called again."""
        of_peer = self._coming.get(sender.peer, {})
        if of_peer.pop(sender, None) is not None and not of_peer:
            del self._coming[sender.peer]

    def remove(self, sender: S) -> None:
        """Forget one; may be called again."""
        self.came(sender)
        self._total -= self._sizes.pop(sender, 0)
