"""Past bugs that broke a promise: the faults of each, as often as a storm has room for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Bug:
    """A past bug.

    Attributes:
        broke: the broken promise.
        strikes: number of strikes by fault, `KIND` or `KIND:WAY`; 0 for a permanent fault.
        every: one in this many bindings fails, where bindings fail.
    """

    broke: str
    strikes: Mapping[str, int]
    every: int = 10

    @property
    def faults(self) -> frozenset[str]:
        """Names of the faults."""
        return frozenset(self.strikes)


BUGS = {
    "two-cuts": Bug(
        "A binding was decided between two cuts of all watches, without a hold that had stood "
        "for seconds: an accepted watch counted as complete (ADR 14).",
        {"cut-watch:twice": 20},
    ),
    "silent-watch": Bug(
        "While the watch was silent Bind read a new pod; the old one's deletion, told later, "
        "looked like a binding that came after the entry, and ended the hold for its successor.",
        {"cut-watch:silence": 12},
    ),
    "nobody-remembers": Bug(
        "What a watch had missed was remembered by nobody, and was taken for nothing (ADR 14).",
        {"cut-watch:expire": 15},
    ),
    "refused-watches": Bug(
        "Owners fell back from their seats, because kube-scheduler still counted pods there whose "
        "Bind calls waited for a watch and were refused then.",
        {"cut-watch:refuse": 10},
    ),
    "forgotten-claims": Bug(
        "Killed every few seconds, Reserver never read to its end what had happened before: slots "
        "whose pods were gone stood as if nobody had claimed them. What it knew by half it wrote "
        "down as certain, and a predecessor's binding ended its successor's hold (ADR 11).",
        {"kill-reserver:at-once": 25},
    ),
    "claims-and-restarts": Bug(
        "A claim was known to a killed Reserver and a restarted API server only (ADR 11).",
        {"kill-reserver": 12, "restart-apiserver": 3},
    ),
    "failed-bindings": Bug(
        "A binding failed: its slot was held again, and others had been given the rest of it; an "
        "owner fell back from the seat that the failed one had taken; its holds on other nodes "
        "had ended before it was written.",
        {"bind-faults:failed": 0},
        every=3,
    ),
    "late-answers": Bug(
        "A binding whose answer was lost or late was taken for one that had failed (ADR 7).",
        {"bind-faults:lost": 0, "bind-faults:late-answer": 0, "bind-faults:done-but-failed": 0},
        every=5,
    ),
    "failed-steering": Bug(
        "An owner whose steering failed waited for an event that had nothing to do with it.",
        {"bind-faults:steering": 0},
        every=2,
    ),
    "leaders-in-turn": Bug(
        "A leader stepped down and was taken for a crash; the next one did not know its bindings.",
        {"standby": 9},
    ),
    "leader-frozen": Bug(
        "None so far: a leader that stood still must not go on once another leads",
        {"standby:freeze": 3},
    ),
    "frozen-reserver": Bug(
        "A Reserver that had stood still decided calls before it had read what its watches had to "
        "tell: however old, its view counted as fresh (ADR 22).",
        {"freeze:reserver": 8},
    ),
}


def _hostile() -> dict[str, Bug]:
    """Return the bugs of hostile objects: the same promises, while a tenant writes one kind."""
    told = {
        "extreme-skew": "One number in a tenant's object ended Reserver, again at each start.",
        "extreme-amounts": "Clamps that differed let a tenant's object cancel others' holds.",
        "many-terms": "A tenant's object of thousands of terms stalled everything for seconds.",
        "many-owners": "A tenant's object of thousands of owners cost each call a second.",
        "many-keys": "A tenant's object of a thousand labels stalled the placer for seconds.",
        "wide-spread": "Each event of a tenant's pods settled all nodes of its reservation.",
        "pod-forged": "A tenant's pod said that it had others' slots, and ended what they held.",
        "what-if": "One question of a tenant's, three megabytes long, stalled all else.",
    }
    return {f"hostile-{name}": Bug(broke, {f"hostile:{name}": 0}) for name, broke in told.items()}


BUGS |= _hostile()
