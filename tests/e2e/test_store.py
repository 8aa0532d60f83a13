"""The store ConfigMap in the hands of managers: broken entries, and edits at the same moment."""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest

from hack.reserver_process import wait_for
from tests.e2e.cluster import Corner
from tests.e2e.forms import OBJECT_FIRST, SHORT, SPEC, Form


def _item(**changes: Any) -> dict[str, Any]:
    whole = {"pod": "owner", "namespace": "shop", "cpu": 1000, "mem": 1024}
    return {**whole, "expire": int(time.time()) + 600, **changes}


BROKEN = {
    "invalid-json": ("{", "invalid JSON"),
    "wrong-type": (json.dumps([_item(cpu="much")]), "[0].cpu"),
    "negative": (json.dumps([_item(cpu=-1)]), "[0].cpu: -1 is negative"),
    "absurd": (json.dumps([_item(mem=2**60)]), "[0].mem"),
    "missing-field": (json.dumps([{"pod": "owner"}]), "[0].namespace: is missing"),
    "milliseconds": (json.dumps([_item(expire=1_800_000_000_000)]), "not milliseconds"),
    "past": (json.dumps([_item(expire=1_000_000_000)]), "lies in the past"),
    "twice": (json.dumps([_item(), _item()]), "[1]: pod shop/owner is in the list already"),
    "Not_A_Node": (json.dumps([_item()]), "Not_A_Node"),
    "spec-no-owner": ("node: n\nowners: []\nresources: {cpu: 1}", "owners: is empty"),
    "spec-typo": ("node: n\nownres: []\nresources: {cpu: 1}", "ownres"),
    "spec-quantity": ("node: n\nowners: [{pod: {name: p}}]\nresources: {cpu: 1x}", "resources.cpu"),
    "spec-text": ("hello", "neither a reservation nor a list"),
}


def test_each_broken_entry_is_refused_alone_with_an_event_that_helps(corner: Corner) -> None:
    (node,) = corner.add_nodes(1, cpu="4")
    prefix = corner.name
    broken = {f"{prefix}.{key}": text for key, (text, _) in BROKEN.items()}
    corner.patch_store(SHORT.store, broken)
    corner.reserve(SHORT, node, "owner", cpu="2000m")
    corner.wait_held(node)
    try:
        for key, (_, words) in BROKEN.items():
            wait_for(partial(_event, corner, f"{prefix}.{key}", words), f"event for {key}")
    finally:
        corner.patch_store(SHORT.store, dict.fromkeys(broken))


def _event(corner: Corner, key: str, words: str) -> bool:
    messages = corner.events("InvalidReservation", SHORT.store[0])
    return any(message.startswith(key) and words in message for message in messages)


def test_a_reservation_on_a_node_that_does_not_exist_is_reported_and_holds_once_it_does(
    corner: Corner,
) -> None:
    node = f"{corner.name}-late-1"
    key = corner.reserve(SPEC, node, "owner", cpu="2")
    wait_for(
        lambda: any(
            key in message and "does not exist" in message
            for message in corner.events("NodeNotFound", SPEC.store[0])
        ),
        "the missing node is reported",
    )
    assert corner.add_nodes(1, cpu="4", prefix=f"{corner.name}-late") == [node]
    corner.create_pod("stranger", {"cpu": "3"})
    corner.wait_refused("stranger", "held by reservation")


def test_a_mebibyte_of_entries_is_enforced_to_the_last_one(corner: Corner) -> None:
    (node,) = corner.add_nodes(1, cpu="4")
    filler = _item(namespace=corner.name, cpu=1, mem=0)
    items = [{**filler, "pod": f"ghost-{number}"} for number in range(10_500)]
    items.append(_item(namespace=corner.name, pod="owner", cpu=2000, mem=0))
    text = json.dumps(items)
    assert 800_000 < len(text) < 2**20
    try:
        # One millicore each for the ghosts: more than the node has, all of it.
        corner.patch_store(SHORT.store, {node: text})
        corner.wait_held(node, cpu="1m")  # It is read in turns: the first entries hold at once.
        corner.create_pod("stranger", {"cpu": "1m"})
        corner.wait_refused("stranger", "held by reservation")
    finally:
        corner.patch_store(SHORT.store, {node: None})


@pytest.mark.parametrize("form", OBJECT_FIRST, ids=lambda form: form.name)
def test_no_edit_of_a_manager_is_lost_while_the_cleaner_removes_entries(
    corner: Corner, form: Form
) -> None:
    """Two managers write the same keys that the cleaner is taking expired entries out of."""
    nodes = corner.add_nodes(2, cpu="4")

    def manage(manager: int) -> None:
        for number in range(20):
            node = nodes[number % 2]
            pod = f"m{manager}-{number}"
            corner.reserve(form, node, f"gone-{pod}", cpu="1m", expires_in=0.5)
            corner.reserve(form, node, f"kept-{pod}", cpu="1m")

    with ThreadPoolExecutor(2) as managers:
        list(managers.map(manage, range(2)))
    wait_for(lambda: not corner.entries_for(form, "gone-"), "expired entries are cleaned away")
    text = "".join(corner.texts(form).values())
    kept = [f"kept-m{manager}-{number}" for manager in range(2) for number in range(20)]
    assert [name for name in kept if f'"{name}"' not in text and f": {name}\n" not in text] == []


def test_a_ttl_counts_from_when_it_was_seen_and_is_written_down(corner: Corner) -> None:
    (node,) = corner.add_nodes(1, cpu="4")
    owner = f"owners: [{{pod: {{name: owner, namespace: {corner.name}}}}}]"
    text = f"# kept for the night\n{owner}\nnode: {node}\nresources: {{cpu: 2}}\nttl: 1h\n"
    key = f"{corner.name}.night"
    began = int(time.time())
    corner.patch_store(SPEC.store, {key: text})
    wait_for(lambda: corner.keys(SPEC.store)[key] != text, "the expiry is written")
    stamped = corner.keys(SPEC.store)[key]
    assert stamped.startswith(text)
    moment = stamped.removeprefix(text).removeprefix("expiresAt: ").strip()
    expires = time.mktime(time.strptime(moment, "%Y-%m-%dT%H:%M:%SZ")) - time.timezone
    assert began + 3600 <= expires <= time.time() + 3600
    corner.wait_held(node)
