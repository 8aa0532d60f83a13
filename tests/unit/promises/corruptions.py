"""Corruptions of a recorded history, each of which breaks one promise."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from copy import deepcopy
from datetime import UTC, datetime, timedelta
from typing import Any

from hack.promises.check import Kind
from tests.unit.promises.recording import SPEC_STORE, Recording


def a_stranger_takes_more(recording: Recording) -> None:
    stranger = next(
        record["object"]["metadata"]["name"]
        for record in recording.records
        if record["object"].get("spec", {}).get("nodeName") == "w-1"
    )
    for item in recording.pod(stranger):
        item["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "5"


def the_hold_was_larger(recording: Recording) -> None:
    recording.rewrite('"cpu": 4000', '"cpu": 8000')


def a_second_claim(recording: Recording) -> None:
    recording.rewrite("owners:\n", "owners:\n- pod: {name: owner-2, namespace: shop}\n")
    recording.keep("w-1.owner-0")
    for item in recording.pod("owner-2"):
        if item["spec"].get("nodeName"):
            item["metadata"]["annotations"]["reserver.io/claims"] = (
                '["reserver-system/e2e/w-1.owner-0@1"]'
            )


def no_claim_on_the_pod(recording: Recording) -> None:
    for item in recording.pod("owner-1"):
        item["metadata"].pop("annotations", None)


def a_claim_that_ended_nothing(recording: Recording) -> None:
    recording.keep("w-1.owner-0")
    recording.go_on(90)


def a_claim_not_cleaned(recording: Recording) -> None:
    recording.keep("w-1.owner-0")
    recording.go_on(30)


def an_expired_entry_not_cleaned(recording: Recording) -> None:
    recording.keep("w-4.never")
    recording.go_on(60)


def nobody_removed_it(recording: Recording) -> None:
    recording.manager = [line for line in recording.manager if line["op"] != "remove"]


def gone_from_a_list(recording: Recording) -> None:
    """Remove the item with the first edit after its creation, long before its owner comes."""
    seen = 0
    for data in recording.store("unicore/reservation"):
        seen += "w-2" in data
        if seen > 1:
            data.pop("w-2", None)


def a_put_without_effect(recording: Recording) -> None:
    for data in recording.store(SPEC_STORE):
        data.pop("w-1.unwanted", None)
    recording.go_on(20)


def nobody_retried(recording: Recording) -> None:
    waiting = next(
        record["object"]["metadata"]["name"]
        for record in recording.records
        if "w-4.never" in json.dumps(record["object"].get("status", {}))
        and record["object"]["metadata"]["name"].startswith("s-")
    )
    landed = [item for item in recording.pod(waiting) if item["spec"].get("nodeName")]
    recording.records = [r for r in recording.records if r["object"] not in landed]
    recording.go_on(30)


def an_owner_elsewhere(recording: Recording) -> None:
    recording.rewrite("resources:", "policy: Require\nresources:")
    for item in recording.pod("owner-0"):
        if item["spec"].get("nodeName"):
            item["spec"]["nodeName"] = "w-4"


def a_claim_of_a_seat_elsewhere(recording: Recording) -> None:
    named = "- pod:\n    name: owner-0\n    namespace: shop\n"
    no_label = "{key: app, operator: DoesNotExist}"
    matched = f"- selector:\n    namespace: shop\n    matchExpressions: [{no_label}]\n"
    recording.rewrite(named, matched)
    for item in recording.pod("owner-0"):
        if item["spec"].get("nodeName"):
            item["spec"]["nodeName"] = "w-4"


def move(recording: Recording, phase: str, mode: str = "ReserveFirst") -> None:
    """Add a move of a pod from the beginning."""
    pod = next(recording.pod("owner-0"))
    metadata = {"name": "move", "namespace": "shop", "uid": "uid-move", "resourceVersion": "1"}
    status = {"phase": phase, "podUID": pod["metadata"]["uid"], "reservation": "seat"}
    spec = {"pod": {"name": "owner-0"}, "mode": mode}
    move = {"metadata": metadata, "spec": spec, "status": status}
    at = recording.records[0]["at"] - 100
    line = {"at": at, "collection": "podmoves", "type": "LISTED", "object": move}
    recording.records.insert(0, line)


def an_eviction_of_a_pod_that_moves(recording: Recording) -> None:
    move(recording, "Evicting")
    evicted = {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}
    *_, last = recording.pod("owner-0")
    last["status"].setdefault("conditions", []).append(evicted)


def an_eviction_before_its_group_had_seats(recording: Recording) -> None:
    an_eviction_of_a_pod_that_moves(recording)
    recording.records[0]["object"]["spec"]["group"] = {"name": "pair", "size": 2}
    line = deepcopy(recording.records[0])
    line["object"]["metadata"]["resourceVersion"] = "2"
    line["object"]["status"]["phase"] = "Landing"
    recording.records.insert(1, line | {"type": "MODIFIED"})


def an_eviction_outside_of_its_window(recording: Recording) -> None:
    an_eviction_of_a_pod_that_moves(recording)
    closed = datetime.fromtimestamp(recording.records[-1]["at"], UTC) + timedelta(hours=6)
    window = f"0 {closed.hour} * * * 1h"
    for item in recording.pod("owner-0"):
        item["metadata"]["annotations"] = {"reserver.io/move-window": window}


def a_move_that_ends_as_if_nobody_had_been_evicted(recording: Recording) -> None:
    move(recording, "Landing")
    line = deepcopy(recording.records[0])
    line["object"]["metadata"]["resourceVersion"] = "2"
    line["object"]["status"] |= {"phase": "Failed", "reason": "SeatImpossible"}
    recording.records.insert(1, line | {"type": "MODIFIED"})


def a_seat_of_a_move_that_ended(recording: Recording) -> None:
    move(recording, "Failed")
    metadata = {"name": "seat", "namespace": "shop", "uid": "u", "resourceVersion": "2"}
    metadata |= {"ownerReferences": [{"kind": "PodMove", "uid": "uid-move"}]}  # type: ignore[dict-item]
    seat = {"metadata": metadata, "spec": {"owners": [], "resources": {}}}
    at = recording.records[0]["at"]
    line = {"at": at, "collection": "reservations", "type": "LISTED", "object": seat}
    recording.records.insert(0, line)


def a_pod_that_leaves_before_its_copy_is_ready(recording: Recording) -> None:
    move(recording, "HandingOver", "SurgeFirst")
    *_, last = recording.pod("owner-0")
    last["metadata"]["deletionTimestamp"] = "2030-01-31T10:00:00Z"


def an_eviction_of_a_pod_that_surges(recording: Recording) -> None:
    an_eviction_of_a_pod_that_moves(recording)
    recording.records[0]["object"]["spec"]["mode"] = "SurgeFirst"


def a_copy_of_a_move_that_ended(recording: Recording) -> None:
    move(recording, "Failed", "SurgeFirst")
    for item in recording.pod("owner-0"):
        item["metadata"].setdefault("annotations", {})["reserver.io/surge"] = "move/uid-move"
    recording.go_on(60)


def an_owner_beside_a_seat_that_others_borrow(recording: Recording) -> None:
    recording.rewrite("resources:", "lend: {belowPriority: 1}\nresources:")
    taken = {"tolerations": [{"key": "reserver.io/lent", "operator": "Exists"}]}
    for record in recording.records:
        spec = record["object"].get("spec", {})
        if spec.get("nodeName") == "w-1":
            spec |= taken
    a_stranger_takes_more(recording)
    for item in recording.pod("owner-0"):
        if item["spec"].get("nodeName"):
            item["spec"]["nodeName"] = "w-4"


def nodes(recording: Recording, name: str) -> Iterator[dict[str, Any]]:
    """Yield the lines of a node, with times long before."""
    for record in recording.records:
        if record["collection"] == "nodes" and record["object"]["metadata"]["name"] == name:
            record["at"] -= 60
            yield record["object"]


def a_place_on_a_node_that_is_emptied(recording: Recording) -> None:
    recording.rewrite("node: w-1\n", "placements: [{node: w-1, slots: 1}]\n")
    for node in nodes(recording, "w-1"):
        conditions = node["status"].setdefault("conditions", [])
        conditions.append({"type": "DrainInProgress", "status": "True"})


def a_cordon_that_goes_with_the_mark(recording: Recording) -> None:
    first, *_ = nodes(recording, "w-1")
    first["spec"]["unschedulable"] = True
    first["metadata"]["annotations"] = {"reserver.io/maintenance": "found-cordoned:window.1"}


CORRUPTIONS: list[tuple[Callable[[Recording], None], Kind]] = [
    (a_stranger_takes_more, Kind.GIVEN_AWAY),
    (the_hold_was_larger, Kind.GIVEN_AWAY),
    (a_second_claim, Kind.CLAIMED_TWICE),
    (a_claim_of_a_seat_elsewhere, Kind.CLAIMED_WRONGLY),
    (no_claim_on_the_pod, Kind.CLAIM_NOT_RECORDED),
    (a_claim_that_ended_nothing, Kind.CLAIM_LOST),
    (a_claim_not_cleaned, Kind.LEFT_OVER),
    (an_expired_entry_not_cleaned, Kind.LEFT_OVER),
    (nobody_removed_it, Kind.RESERVATION_LOST),
    (gone_from_a_list, Kind.RESERVATION_LOST),
    (a_put_without_effect, Kind.EDIT_VANISHED),
    (nobody_retried, Kind.STALE_REFUSAL),
    (an_owner_elsewhere, Kind.OFF_SEAT),
    (an_owner_beside_a_seat_that_others_borrow, Kind.KEPT_OUT),
    (an_eviction_of_a_pod_that_moves, Kind.EVICTED_WITHOUT_SEAT),
    (an_eviction_before_its_group_had_seats, Kind.EVICTED_BEFORE_GROUP),
    (an_eviction_outside_of_its_window, Kind.EVICTED_OUTSIDE_WINDOW),
    (a_move_that_ends_as_if_nobody_had_been_evicted, Kind.SEAT_GIVEN_UP),
    (a_seat_of_a_move_that_ended, Kind.SEAT_OUTLIVED),
    (a_pod_that_leaves_before_its_copy_is_ready, Kind.REMOVED_BEFORE_READY),
    (an_eviction_of_a_pod_that_surges, Kind.EVICTED_WHILE_SURGING),
    (a_copy_of_a_move_that_ended, Kind.SURGE_OUTLIVED),
    (a_place_on_a_node_that_is_emptied, Kind.PLACED_IN_MAINTENANCE),
    (a_cordon_that_goes_with_the_mark, Kind.CORDON_LIFTED),
]
