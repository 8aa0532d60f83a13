"""A second item for one pod in the list of a node: refused, and in force once the first is gone."""

from __future__ import annotations

import json
from collections import deque
from dataclasses import replace

from reserver.k8s.objects.objects import ConfigMapObject, Metadata
from reserver.reservations.reservation import Ref
from reserver.stores.configmap.cache import ConfigMapCache
from reserver.stores.edits import Edit
from reserver.stores.entries import EntryProblem
from tests.builders import NAMESPACE, NOW, held, node, pod, state_of

LIST = Ref(NAMESPACE, "store", "worker-1")


def item(cpu: int) -> dict[str, object]:
    return {"pod": "web", "namespace": "shop", "cpu": cpu, "mem": 0, "expire": int(NOW) + 3600}


def test_a_second_item_is_told_and_holds_for_a_successor_once_the_first_is_claimed() -> None:
    state = state_of(node("worker-1", cpu="8"))
    reported: list[EntryProblem] = []
    store = ConfigMapCache(state.ledger, lambda: NOW, lambda _, problem: reported.append(problem))

    def show(text: str | None, revision: int) -> None:
        metadata = Metadata(
            name="store", namespace=NAMESPACE, uid="u", resource_version=str(revision)
        )
        data = {} if text is None else {LIST.key: text}
        deque(store.put(ConfigMapObject(metadata, data)), maxlen=0)

    show(json.dumps([item(1000), item(2000)]), 10)
    assert (held(state, "worker-1"), len(reported)) == (1000, 1)
    state.pod_seen(replace(pod("web", node="worker-1", cpu="1"), revision=11))
    edit = store.due_edit(LIST, NOW)
    assert isinstance(edit, Edit)
    show(edit.value, 12)
    assert held(state, "worker-1") == 2000  # Written after the binding: for the pod's successor.
    successor = replace(pod("web", uid="next", node="worker-1", cpu="1"), revision=20)
    state.pod_gone(successor.name)
    state.pod_seen(successor)
    assert held(state, "worker-1") == 0
