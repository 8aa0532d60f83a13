"""The reservations that were acknowledged as backed."""

from collections.abc import Mapping

from reserver.reservations.enums import Phase
from reserver.reservations.reservation import Ref
from reserver.reservations.status import ShortNodes
from reserver.scheduling.state import State

Acknowledged = dict[Ref, dict[str, Mapping[str, int]]]
"""The backed reservations, with their held amounts by node."""


def assert_still_backed(state: State, acknowledged: Acknowledged) -> None:
    """Check that what was acknowledged is backed, and acknowledge what is backed now.

    What a binding in flight claims is checked once its result is known.
    """
    ledger, backed = state.ledger, _backed(state)
    claimed = {ref for ref in acknowledged if ledger.is_being_claimed(ref)}
    for ref in acknowledged.keys() - claimed:
        if _has_changed(ref, acknowledged[ref], state):
            del acknowledged[ref]
    assert acknowledged.keys() - claimed <= backed
    acknowledged |= {ref: ledger.holding(ref) for ref in backed - claimed}


def _backed(state: State) -> set[Ref]:
    """Return the backed reservations that do not yield and are at their recorded places."""
    short, ledger = ShortNodes.of(state.snapshot), state.ledger
    return {
        each.ref
        for each, _ in ledger
        if each.yields_above is None
        and each.placed == ledger.recorded_place(each.ref)
        and short.status(each, ledger).is_backed
    }


def _has_changed(ref: Ref, before: Mapping[str, Mapping[str, int]], state: State) -> bool:
    """Return whether a reservation was promised something else than before."""
    ledger = state.ledger
    now, held = ledger.get(ref), ledger.holding(ref)
    return (
        now is None
        or ledger.phase(ref) is not Phase.ACTIVE
        or now.yields_above is not None
        or ledger.is_edited(ref)
        or ledger.recorded_place(ref) != now.placed
        or any(n.get("cpu", 0) > before.get(node, {}).get("cpu", 0) for node, n in held.items())
    )
