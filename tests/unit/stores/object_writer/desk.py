"""Sets of reservations, and their references."""

from collections.abc import Callable

from reserver.reservations.reservation import Ref
from tests.unit.stores.desks import HOME, ItemDesk

Make = Callable[..., ItemDesk]


def ref(key: str) -> Ref:
    return Ref.of_object(HOME, key)
