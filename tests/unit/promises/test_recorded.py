"""A history that was recorded on a real control plane: correct as it is, caught once it is not."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from copy import deepcopy
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from hack.promises.check import Kind, check, judge, read_history
from hack.promises.history import history_of
from tests.unit.promises.tape import Tape

FOLDER = Path(__file__).parent / "recorded"
SPEC_STORE = "reserver-system/e2e"
SCHEDULERS = frozenset({"reserver-scheduler"})


class Recording:
    """The recorded lines, to be changed."""

    def __init__(self) -> None:
        self.records = _lines(FOLDER / "history.jsonl")
        self.manager = _lines(FOLDER / "manager.jsonl")

    def kinds(self) -> set[Kind]:
        history = history_of(self.records, self.manager)
        return {violation.kind for violation in judge(history, Tape.rules()).violations}

    def pod(self, name: str) -> Iterator[dict[str, Any]]:
        """Yield all that was written of a pod."""
        for record in self.records:
            if record["collection"] == "pods" and record["object"]["metadata"]["name"] == name:
                yield record["object"]

    def store(self, configmap: str) -> Iterator[dict[str, str]]:
        """Yield the data of a ConfigMap, version by version."""
        for record in self.records:
            if record["collection"] == "configmaps":
                item = record["object"]
                if f"{item['metadata']['namespace']}/{item['metadata']['name']}" == configmap:
                    yield item.setdefault("data", {})

    def rewrite(self, before: str, after: str) -> None:
        """Have an entry say something else from the beginning."""
        for store in (SPEC_STORE, "unicore/reservation"):
            for data in self.store(store):
                for key in data:
                    data[key] = data[key].replace(before, after)
        for line in self.manager:
            line["value"] = line.get("value", "").replace(before, after)

    def keep(self, key: str) -> None:
        """Have an entry stay in the store once it was there."""
        value = ""
        for data in self.store(SPEC_STORE):
            value = data.get(key, value)
            if value:
                data[key] = value

    def go_on(self, seconds: float) -> None:
        """Have the recording end later."""
        self.records[-1]["at"] += seconds


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def _a_stranger_takes_more(recording: Recording) -> None:
    stranger = next(
        record["object"]["metadata"]["name"]
        for record in recording.records
        if record["object"].get("spec", {}).get("nodeName") == "w-1"
    )
    for item in recording.pod(stranger):
        item["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "5"


def _the_hold_was_larger(recording: Recording) -> None:
    recording.rewrite('"cpu": 4000', '"cpu": 8000')


def _a_second_claim(recording: Recording) -> None:
    recording.rewrite("owners:\n", "owners:\n- pod: {name: owner-2, namespace: shop}\n")
    recording.keep("w-1.owner-0")
    for item in recording.pod("owner-2"):
        if item["spec"].get("nodeName"):
            item["metadata"]["annotations"]["reserver.io/claims"] = (
                '["reserver-system/e2e/w-1.owner-0@1"]'
            )


def _no_claim_on_the_pod(recording: Recording) -> None:
    for item in recording.pod("owner-1"):
        item["metadata"].pop("annotations", None)


def _a_claim_that_ended_nothing(recording: Recording) -> None:
    recording.keep("w-1.owner-0")
    recording.go_on(90)


def _a_claim_not_cleaned(recording: Recording) -> None:
    recording.keep("w-1.owner-0")
    recording.go_on(30)


def _an_expired_entry_not_cleaned(recording: Recording) -> None:
    recording.keep("w-4.never")
    recording.go_on(60)


def _nobody_removed_it(recording: Recording) -> None:
    recording.manager = [line for line in recording.manager if line["op"] != "remove"]


def _gone_from_a_list(recording: Recording) -> None:
    """The item goes with the first edit after it was written, long before its owner comes."""
    seen = 0
    for data in recording.store("unicore/reservation"):
        seen += "w-2" in data
        if seen > 1:
            data.pop("w-2", None)


def _a_put_without_effect(recording: Recording) -> None:
    for data in recording.store(SPEC_STORE):
        data.pop("w-1.unwanted", None)
    recording.go_on(20)


def _nobody_retried(recording: Recording) -> None:
    waiting = next(
        record["object"]["metadata"]["name"]
        for record in recording.records
        if "w-4.never" in json.dumps(record["object"].get("status", {}))
        and record["object"]["metadata"]["name"].startswith("s-")
    )
    landed = [item for item in recording.pod(waiting) if item["spec"].get("nodeName")]
    recording.records = [r for r in recording.records if r["object"] not in landed]
    recording.go_on(30)


def _an_owner_elsewhere(recording: Recording) -> None:
    recording.rewrite("resources:", "policy: Require\nresources:")
    for item in recording.pod("owner-0"):
        if item["spec"].get("nodeName"):
            item["spec"]["nodeName"] = "w-4"


def _a_claim_of_a_seat_elsewhere(recording: Recording) -> None:
    named = "- pod:\n    name: owner-0\n    namespace: shop\n"
    no_label = "{key: app, operator: DoesNotExist}"
    matched = f"- selector:\n    namespace: shop\n    matchExpressions: [{no_label}]\n"
    recording.rewrite(named, matched)
    for item in recording.pod("owner-0"):
        if item["spec"].get("nodeName"):
            item["spec"]["nodeName"] = "w-4"


def _move(recording: Recording, phase: str, mode: str = "ReserveFirst") -> None:
    """Have there been a move of a pod from the beginning."""
    pod = next(recording.pod("owner-0"))
    metadata = {"name": "move", "namespace": "shop", "uid": "uid-move", "resourceVersion": "1"}
    status = {"phase": phase, "podUID": pod["metadata"]["uid"], "reservation": "seat"}
    spec = {"pod": {"name": "owner-0"}, "mode": mode}
    move = {"metadata": metadata, "spec": spec, "status": status}
    at = recording.records[0]["at"] - 100
    line = {"at": at, "collection": "podmoves", "type": "LISTED", "object": move}
    recording.records.insert(0, line)


def _an_eviction_of_a_pod_that_moves(recording: Recording) -> None:
    _move(recording, "Evicting")
    evicted = {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}
    *_, last = recording.pod("owner-0")
    last["status"].setdefault("conditions", []).append(evicted)


def _an_eviction_before_its_group_had_seats(recording: Recording) -> None:
    _an_eviction_of_a_pod_that_moves(recording)
    recording.records[0]["object"]["spec"]["group"] = {"name": "pair", "size": 2}
    line = deepcopy(recording.records[0])
    line["object"]["metadata"]["resourceVersion"] = "2"
    line["object"]["status"]["phase"] = "Landing"
    recording.records.insert(1, line | {"type": "MODIFIED"})


def _an_eviction_outside_of_its_window(recording: Recording) -> None:
    _an_eviction_of_a_pod_that_moves(recording)
    closed = datetime.fromtimestamp(recording.records[-1]["at"], UTC) + timedelta(hours=6)
    window = f"0 {closed.hour} * * * 1h"
    for item in recording.pod("owner-0"):
        item["metadata"]["annotations"] = {"reserver.io/move-window": window}


def _a_move_that_ends_as_if_nobody_had_been_evicted(recording: Recording) -> None:
    _move(recording, "Landing")
    line = deepcopy(recording.records[0])
    line["object"]["metadata"]["resourceVersion"] = "2"
    line["object"]["status"] |= {"phase": "Failed", "reason": "SeatImpossible"}
    recording.records.insert(1, line | {"type": "MODIFIED"})


def _a_seat_of_a_move_that_ended(recording: Recording) -> None:
    _move(recording, "Failed")
    metadata = {"name": "seat", "namespace": "shop", "uid": "u", "resourceVersion": "2"}
    metadata |= {"ownerReferences": [{"kind": "PodMove", "uid": "uid-move"}]}  # type: ignore[dict-item]
    seat = {"metadata": metadata, "spec": {"owners": [], "resources": {}}}
    at = recording.records[0]["at"]
    line = {"at": at, "collection": "reservations", "type": "LISTED", "object": seat}
    recording.records.insert(0, line)


def _a_pod_that_leaves_before_its_copy_is_ready(recording: Recording) -> None:
    _move(recording, "HandingOver", "SurgeFirst")
    *_, last = recording.pod("owner-0")
    last["metadata"]["deletionTimestamp"] = "2030-01-31T10:00:00Z"


def _an_eviction_of_a_pod_that_surges(recording: Recording) -> None:
    _an_eviction_of_a_pod_that_moves(recording)
    recording.records[0]["object"]["spec"]["mode"] = "SurgeFirst"


def _a_copy_of_a_move_that_ended(recording: Recording) -> None:
    _move(recording, "Failed", "SurgeFirst")
    for item in recording.pod("owner-0"):
        item["metadata"].setdefault("annotations", {})["reserver.io/surge"] = "move/uid-move"
    recording.go_on(60)


def _an_owner_beside_a_seat_that_others_borrow(recording: Recording) -> None:
    recording.rewrite("resources:", "lend: {belowPriority: 1}\nresources:")
    taken = {"tolerations": [{"key": "reserver.io/lent", "operator": "Exists"}]}
    for record in recording.records:
        spec = record["object"].get("spec", {})
        if spec.get("nodeName") == "w-1":
            spec |= taken
    _a_stranger_takes_more(recording)
    for item in recording.pod("owner-0"):
        if item["spec"].get("nodeName"):
            item["spec"]["nodeName"] = "w-4"


def _nodes(recording: Recording, name: str) -> Iterator[dict[str, Any]]:
    """Yield the lines of a node, which others have seen long before."""
    for record in recording.records:
        if record["collection"] == "nodes" and record["object"]["metadata"]["name"] == name:
            record["at"] -= 60
            yield record["object"]


def _a_place_on_a_node_that_is_emptied(recording: Recording) -> None:
    recording.rewrite("node: w-1\n", "placements: [{node: w-1, slots: 1}]\n")
    for node in _nodes(recording, "w-1"):
        conditions = node["status"].setdefault("conditions", [])
        conditions.append({"type": "DrainInProgress", "status": "True"})


def _a_cordon_that_goes_with_the_mark(recording: Recording) -> None:
    first, *_ = _nodes(recording, "w-1")
    first["spec"]["unschedulable"] = True
    first["metadata"]["annotations"] = {"reserver.io/maintenance": "found-cordoned:window.1"}


CORRUPTIONS: list[tuple[Callable[[Recording], None], Kind]] = [
    (_a_stranger_takes_more, Kind.GIVEN_AWAY),
    (_the_hold_was_larger, Kind.GIVEN_AWAY),
    (_a_second_claim, Kind.CLAIMED_TWICE),
    (_a_claim_of_a_seat_elsewhere, Kind.CLAIMED_WRONGLY),
    (_no_claim_on_the_pod, Kind.CLAIM_NOT_RECORDED),
    (_a_claim_that_ended_nothing, Kind.CLAIM_LOST),
    (_a_claim_not_cleaned, Kind.LEFT_OVER),
    (_an_expired_entry_not_cleaned, Kind.LEFT_OVER),
    (_nobody_removed_it, Kind.RESERVATION_LOST),
    (_gone_from_a_list, Kind.RESERVATION_LOST),
    (_a_put_without_effect, Kind.EDIT_VANISHED),
    (_nobody_retried, Kind.STALE_REFUSAL),
    (_an_owner_elsewhere, Kind.OFF_SEAT),
    (_an_owner_beside_a_seat_that_others_borrow, Kind.KEPT_OUT),
    (_an_eviction_of_a_pod_that_moves, Kind.EVICTED_WITHOUT_SEAT),
    (_an_eviction_before_its_group_had_seats, Kind.EVICTED_BEFORE_GROUP),
    (_an_eviction_outside_of_its_window, Kind.EVICTED_OUTSIDE_WINDOW),
    (_a_move_that_ends_as_if_nobody_had_been_evicted, Kind.SEAT_GIVEN_UP),
    (_a_seat_of_a_move_that_ended, Kind.SEAT_OUTLIVED),
    (_a_pod_that_leaves_before_its_copy_is_ready, Kind.REMOVED_BEFORE_READY),
    (_an_eviction_of_a_pod_that_surges, Kind.EVICTED_WHILE_SURGING),
    (_a_copy_of_a_move_that_ended, Kind.SURGE_OUTLIVED),
    (_a_place_on_a_node_that_is_emptied, Kind.PLACED_IN_MAINTENANCE),
    (_a_cordon_that_goes_with_the_mark, Kind.CORDON_LIFTED),
]


def test_the_recording_is_correct_and_shows_what_it_should() -> None:
    report = check(read_history(FOLDER), schedulers=SCHEDULERS)
    assert (report.violations, report.warnings, report.notes) == ((), (), ())
    assert report.counts["owners"] == 3
    assert report.counts["judged"] == report.counts["pods bound"] == 19


@pytest.mark.parametrize(
    ("corrupt", "kind"), CORRUPTIONS, ids=[c.__name__.strip("_") for c, _ in CORRUPTIONS]
)
def test_each_corruption_is_caught(corrupt: Callable[[Recording], None], kind: Kind) -> None:
    recording = Recording()
    assert recording.kinds() == set()
    corrupt(recording)
    assert kind in recording.kinds()


def test_every_kind_of_violation_has_its_corruption() -> None:
    assert {kind for _, kind in CORRUPTIONS} == set(Kind)


@pytest.mark.parametrize("seed", range(10))
def test_the_order_of_lines_does_not_matter_nor_that_one_comes_twice(seed: int) -> None:
    recording = Recording()
    _nobody_removed_it(recording)
    _a_stranger_takes_more(recording)
    before = judge(history_of(recording.records, recording.manager), Tape.rules())
    shuffled = deepcopy(recording.records) + deepcopy(recording.records)
    random.Random(seed).shuffle(shuffled)
    after = judge(history_of(shuffled, recording.manager), Tape.rules())
    assert after == before


def test_half_a_line_at_the_end_is_passed_over(tmp_path: Path) -> None:
    whole = (FOLDER / "history.jsonl").read_text()
    (tmp_path / "history.jsonl").write_text(whole + whole[:100])
    assert read_history(tmp_path).lines == read_history(FOLDER).lines
