"""Bind calls for pods that the watch has not shown, or that are gone."""

import dataclasses
from collections.abc import Callable

import pytest

from reserver.cluster.pod import Pod
from tests.builders import pod, requested
from tests.unit.extender.bindings.calls import OWNER, bind
from tests.unit.extender.conftest import Served
from tests.unit.extender.fakes import call


async def test_a_pod_that_the_watch_has_not_shown_is_read(served: Served) -> None:
    served.cluster.pods[OWNER.name] = OWNER
    assert await bind(served, call("owner")) == ""
    assert served.cluster.reads == 1


async def test_a_pod_that_is_no_more_is_refused(served: Served) -> None:
    assert "pod cannot be read" in await bind(served, call("ghost"))


@pytest.mark.parametrize("watched", [True, False])
async def test_a_pod_that_was_replaced_is_refused(served: Served, *, watched: bool) -> None:
    served.cluster.pods[OWNER.name] = OWNER
    if watched:
        served.show(OWNER)
    assert "replaced" in await bind(served, call("owner", uid="uid-old"))
    assert served.cluster.bound == []


GHOST = dataclasses.replace(pod("ghost", nominated="worker-1", cpu="2", priority=10), revision=10)


def shown_and_gone(served: Served) -> None:
    """Show the creation and the deletion of a pod by the watch."""
    served.state.pod_seen(GHOST)
    served.state.pod_seen(dataclasses.replace(GHOST, terminating=True, revision=11))
    served.state.pod_gone(GHOST.name)


def gone_in_a_gap(served: Served) -> None:
    """Show a list without the pod, after the watch missed changes."""
    served.state.pods_shown(12)


def shown_and_replaced(served: Served) -> None:
    shown_and_gone(served)
    served.state.pod_seen(
        dataclasses.replace(GHOST, uid="uid-next", nominated_node="", revision=13)
    )


@pytest.mark.parametrize("happens", [shown_and_gone, gone_in_a_gap, shown_and_replaced])
@pytest.mark.parametrize("asked", ["preempt", "bind"])
async def test_a_pod_that_is_gone_before_it_was_read_does_not_come_back(
    served: Served,
    asked: str,
    happens: Callable[[Served], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def read_pod(_: object) -> Pod:
        happens(served)  # While the answer is on its way.
        return GHOST

    monkeypatch.setattr(served.cluster, "read_pod", read_pod)
    if asked == "preempt":
        verdict = await served.extender.preempt(GHOST, {"worker-1": ("uid-v",)})
        assert (verdict.nodes, verdict.spared) == ((), {})
    else:
        assert "pod cannot be read" in await bind(served, call("ghost"))
    known = served.state.pods.get(GHOST.name)
    assert known is None or known.uid != GHOST.uid
    assert not list(served.state.nominations.nodes())
    assert served.cluster.bound == []
    assert requested(served.state, "worker-1") == 0


async def test_a_pod_that_the_watch_has_still_to_show_is_taken_as_it_is_read(
    served: Served,
) -> None:
    served.state.pod_seen(dataclasses.replace(pod("earlier"), revision=9))
    served.cluster.pods[GHOST.name] = GHOST
    read = dataclasses.replace(pod("later"), revision=20)
    served.cluster.pods[read.name] = read
    await served.bindings.find_pod(read.name, read.uid)  # A read pod shows nothing of others.
    await served.bindings.find_pod(GHOST.name, GHOST.uid)
    assert served.state.pods[GHOST.name] == GHOST
