"""Pods that change between Filter and their binding."""

import dataclasses

import pytest

from reserver.cluster.pod import Pod, PodName
from reserver.errors import ApiError, NotReady
from reserver.extender import bindings as bindings_module
from tests.builders import held, pod, requested, reservation, rule
from tests.unit.extender.bindings.calls import OWNER, SEAT, begun, bind
from tests.unit.extender.conftest import Served
from tests.unit.extender.fakes import call


def as_of(revision: int, pod: Pod = OWNER, **changes: object) -> Pod:
    return dataclasses.replace(pod, revision=revision, **changes)  # type: ignore[arg-type]


STRANGER = pod("stranger", cpu="1")
CONFLICT = ApiError(409, "Conflict", "the object has been modified")


def changes_first(served: Served, *versions: Pod) -> None:
    """Change a pod so often before its binding arrives."""
    waiting = list(versions)

    def on_bind() -> None:
        served.cluster.failure = CONFLICT if waiting else None
        if waiting:
            now = waiting.pop(0)
            served.cluster.pods[now.name] = now

    served.cluster.on_bind = on_bind


async def test_a_pod_that_grew_since_it_was_reserved_is_judged_again(served: Served) -> None:
    served.show(SEAT, as_of(5, STRANGER))
    assert (await served.bindings.reserve(call("stranger"))).refusal is None
    served.show(as_of(6, pod("stranger", cpu="3")))
    assert await bind(served, call("stranger")) == "held by reservation shop/store/r"
    assert served.cluster.bound == []
    assert (requested(served.state, "worker-1"), len(served.bindings)) == (0, 0)
    served.show(as_of(7, pod("stranger", cpu="2")))
    assert await bind(served, call("stranger")) == ""


async def test_a_pod_that_changed_since_it_was_reserved_and_still_fits_is_bound(
    served: Served,
) -> None:
    served.show(SEAT, as_of(5, STRANGER))
    assert (await served.bindings.reserve(call("stranger"))).refusal is None
    served.show(as_of(6, pod("stranger", cpu="2")))
    assert await bind(served, call("stranger")) == ""
    assert requested(served.state, "worker-1") == 2000


async def test_a_pod_that_grew_before_its_binding_came_is_judged_again(served: Served) -> None:
    served.show(SEAT, as_of(5, STRANGER))
    changes_first(served, as_of(6, pod("stranger", cpu="3")))
    assert await bind(served, call("stranger")) == "held by reservation shop/store/r"
    assert len(served.cluster.bound) == 1
    assert (requested(served.state, "worker-1"), len(served.bindings)) == (0, 0)


async def test_a_pod_that_is_no_owner_any_more_does_not_get_the_seat(served: Served) -> None:
    seat = reservation("r", owners=(), rules=[rule(app="web")], cpu="3")
    web = pod("web-0", cpu="2", labels={"app": "web"})
    served.show(seat, as_of(5, web))
    changes_first(served, as_of(6, web, labels={"app": "other"}))
    assert await bind(served, call("web-0")) == "held by reservation shop/store/r"
    assert (requested(served.state, "worker-1"), held(served.state, "worker-1")) == (0, 3000)


async def test_a_pod_that_becomes_an_owner_claims_its_seat(served: Served) -> None:
    seat = reservation("r", owners=(), rules=[rule(app="web")], cpu="2")
    web = pod("web-0", cpu="2")
    served.show(seat, as_of(5, web))
    changes_first(served, as_of(6, web, labels={"app": "web"}))
    assert await bind(served, call("web-0")) == ""
    assert [claims for _, _, claims in served.cluster.bound] == [(), (seat.identity,)]
    assert (requested(served.state, "worker-1"), held(served.state, "worker-1")) == (2000, 0)


async def test_a_pod_that_only_was_nominated_meanwhile_is_bound(served: Served) -> None:
    served.show(SEAT, as_of(5))
    changes_first(served, as_of(6, nominated_node="worker-1"), as_of(7))
    assert await bind(served, call("owner")) == ""
    assert served.cluster.bound == [("owner", "worker-1", (SEAT.identity,))] * 3
    assert (requested(served.state, "worker-1"), held(served.state, "worker-1")) == (2000, 0)


async def test_a_pod_that_changes_each_time_is_left_for_kube_scheduler_to_try_again(
    served: Served,
) -> None:
    served.show(SEAT, as_of(5))
    changes_first(served, *map(as_of, range(6, 20)))
    assert await bind(served, call("owner")) == "binding failed: Conflict"
    assert len(served.cluster.bound) == bindings_module.MOST_TRIES
    assert (requested(served.state, "worker-1"), held(served.state, "worker-1")) == (0, 2000)


@pytest.mark.parametrize(
    "now", [as_of(5), as_of(6, node="worker-2"), as_of(6, uid="uid-next")], ids=repr
)
async def test_what_conflicts_for_another_reason_is_not_tried_again(
    served: Served, now: Pod
) -> None:
    served.show(SEAT, as_of(5))
    changes_first(served, now, now)
    assert await bind(served, call("owner")) == "binding failed: Conflict"
    assert len(served.cluster.bound) == 1


async def test_a_hold_that_came_meanwhile_counts_when_a_pod_is_judged_again(
    served: Served,
) -> None:
    served.show(as_of(5, STRANGER))
    changes_first(served, as_of(6, STRANGER))
    binding = await begun(served, call("stranger"))
    served.state.ledger.put(reservation("late", cpu="4"))
    served.cluster.gate.set()
    assert await binding == "held by reservation shop/store/late"


async def test_nothing_is_decided_on_a_view_that_fell_behind_while_the_pod_was_read(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    served.show(SEAT)
    served.cluster.pods[OWNER.name] = OWNER
    read = served.cluster.read_pod

    async def slowly(name: PodName) -> Pod:
        served.readiness.said = ("pods are out of date",)
        return await read(name)

    monkeypatch.setattr(served.cluster, "read_pod", slowly)
    with pytest.raises(NotReady):
        await bind(served, call("owner"))
    assert served.cluster.bound == []
