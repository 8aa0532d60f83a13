"""The record of repeatable requests takes no more memory than it counts for."""

from __future__ import annotations

import json
import subprocess
import sys
from multiprocessing import get_context
from pathlib import Path

import pytest

from reserver.grpc.creation import CreationCall
from reserver.reservations.reservation import Ref
from reserver.v1 import reservation_pb2 as pb

pytestmark = pytest.mark.long

ENOUGH = 16 * 2**20
"""Bytes of remembered requests of a kind, so many that the rest of the process is small."""


def plain(number: int) -> pb.Reservation:
    owner = pb.Owner(pod=pb.PodOwner(name=f"web-{number}", namespace="shop"))
    return pb.Reservation(
        name=f"web-{number}",
        id=f"reserver-system/reservations/web-{number}",
        etag="0123456789abcdef",
        spec=pb.ReservationSpec(owners=[owner], node="worker-1", resources={"cpu": "1"}),
        status=pb.ReservationStatus(phase=pb.PHASE_ACTIVE, backed=True, reason="RoomHeld"),
    )


def of_many_owners(number: int) -> pb.Reservation:
    one = plain(number)
    for index in range(999):
        one.spec.owners.add().selector.match_labels[f"key-{index}"] = "value"
    return one


def of_many_resources(number: int) -> pb.Reservation:
    one = plain(number)
    one.spec.resources.update({f"example.com/{index}": "1" for index in range(64)})
    return one


def of_a_long_name(number: int) -> pb.Reservation:
    one = plain(number)
    one.spec.owners[0].pod.name = "x" * 200_000
    return one


KINDS = {make.__name__: make for make in (plain, of_many_owners, of_many_resources, of_a_long_name)}


def begun(number: int, shown: pb.Reservation) -> tuple[tuple[str, str], CreationCall]:
    """Return the key of a creation request, and the call that it begins."""
    key = (f"system:serviceaccount:fleet:manager-{number}", f"{number:064}")
    ref = Ref("reserver-system", "reservations", shown.name)
    return key, CreationCall(bytes(32), (ref,), None, {ref: shown.SerializeToString()})


def taken() -> int:
    """Return the memory of this process, in bytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096


def measure(kind: str) -> float:
    """Return the memory of requests of a kind, as a share of their counted size."""
    kept, counted = [begun(0, KINDS[kind](0))], 0
    before = taken()
    while counted < ENOUGH:
        kept.append(begun(len(kept), KINDS[kind](len(kept))))
        counted += kept[-1][1].size
    return (taken() - before) / counted


def measure_each() -> str:
    """Return `measure` of each kind as JSON, each in its own process."""
    with get_context("fork").Pool(1, maxtasksperchild=1) as pool:
        return json.dumps(dict(zip(KINDS, pool.map(measure, KINDS, chunksize=1), strict=True)))


@pytest.fixture(scope="module")
def shares() -> dict[str, float]:
    # Forked from a process of its own: what others have left here would take it in.
    code = f"from {__name__} import measure_each; print(measure_each())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)  # type: ignore[no-any-return]


@pytest.mark.parametrize("kind", KINDS)
def test_a_request_takes_no_more_memory_than_it_counts_for(
    kind: str, shares: dict[str, float]
) -> None:
    assert shares[kind] < 1.1  # A tenth is the allocator's.
