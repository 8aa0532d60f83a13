"""Values of data keys, as people and managers write them."""

import json

from reserver.errors import InvalidInput
from reserver.reservations.reservation import Ref, Reservation
from reserver.stores.configmap.entries import read_key
from reserver.stores.entries import Entries, EntryProblem

SEEN = 1_900_000_000.0
SPEC = {
    "owners": [{"pod": {"name": "web-0"}}],
    "resources": {"cpu": "2", "memory": "4Gi"},
    "node": "worker-1",
    "expiresAt": "2030-03-17T17:46:40Z",
}
SHORT = {"pod": "web-0", "namespace": "shop", "cpu": 2000, "mem": 4 * 2**30, "expire": 1899999999}
LONG = {
    "reservingPod": "web-0",
    "reservingPodNamespace": "shop",
    "cpuMilli": 2000,
    "memMilli": 4 * 2**30,
    "expireAt": 1899999999,
}


def read(text: str, key: str = "web") -> Entries:
    """Return the entries in the value of a data key."""
    return read_key(Ref("shop", "store", key), text, SEEN)


def one(text: str, key: str = "web") -> Reservation:
    """Return the one reservation in a value."""
    entries = read(text, key)
    assert entries.problems == ()
    (reservation,) = entries.reservations
    return reservation


def refusal(text: str, key: str = "web") -> InvalidInput:
    """Return the one problem; assert that users and clients can read it."""
    entries = read(text, key)
    assert entries.reservations == ()
    (problem,) = entries.problems
    return presentable(problem)


def presentable(problem: EntryProblem) -> InvalidInput:
    """Return a problem; assert that users and clients can read it."""
    str(problem).encode()
    assert problem.error.problem
    assert problem.error.remedy
    return problem.error


def spec(**changes: object) -> str:
    """Return the spec with some fields changed; None removes one."""
    return json.dumps({name: v for name, v in (SPEC | changes).items() if v is not None})


def items(*written: object) -> str:
    """Return a list of items."""
    return json.dumps(written)


def item(**changes: object) -> dict[str, object]:
    """Return the item in the short form with some fields changed; None removes one."""
    return {name: v for name, v in (SHORT | changes).items() if v is not None}


YAML = """\
# Held for the next release.
owners:
- pod: {name: web-0}
resources:
  cpu: 2
  memory: 4Gi
node: worker-1
expiresAt: 2030-03-17T17:46:39Z
"""
