"""The reservations that were acknowledged as backed."""

from collections.abc import Mapping
from typing import NamedTuple

from reserver.reservations.enums import Phase
from reserver.reservations.reservation import Ref
from reserver.reservations.status import ShortNodes
from reserver.scheduling.state import State


class Backed(NamedTuple):
    """What was acknowledged.

    Attributes:
        held: the held amounts by node.
        claimed_as: the identity that a binding in flight claims; empty without one.
    """

    held: Mapping[str, Mapping[str, int]]
    claimed_as: str = ""


Acknowledged = dict[Ref, Backed]


def assert_still_backed(state: State, acknowledged: Acknowledged) -> None:
    """Check that what was acknowledged is backed, and acknowledge what is backed now.

    What a binding in flight claims is checked once its result is known.
    """
    ledger, backed = state.ledger, _backed(state)
    claimed = {
        ref: known.identity
        for ref in acknowledged
        if (known := ledger.get(ref)) and any(map(state.assumption, ledger.claiming(ref)))
    }
    for ref in acknowledged.keys() - claimed:
        if _has_changed(ref, acknowledged[ref], state):
            del acknowledged[ref]
    assert acknowledged.keys() - claimed <= backed
    acknowledged |= {ref: Backed(ledger.holding(ref)) for ref in backed - claimed.keys()}
    acknowledged |= {ref: Backed(acknowledged[ref].held, name) for ref, name in claimed.items()}


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


def _has_changed(ref: Ref, before: Backed, state: State) -> bool:
    """Return whether a reservation was promised something else than before."""
    ledger = state.ledger
    now = ledger.get(ref)
    cpus = {node: amounts.get("cpu", 0) for node, amounts in ledger.holding(ref).items()}
    return (
        now is None
        or before.claimed_as not in ("", now.identity)
        or ledger.phase(ref) is not Phase.ACTIVE
        or now.yields_above is not None
        or ledger.is_edited(ref)
        or ledger.recorded_place(ref) != now.placed
        or any(n > before.held.get(node, {}).get("cpu", 0) for node, n in cpus.items())
    )
