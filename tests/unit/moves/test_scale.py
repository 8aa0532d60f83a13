"""Controllers of any kind are asked by their scale how many pods they want."""

from dataclasses import replace

import msgspec
import pytest

from reserver.cluster.pod import Controller, Pod, PodName
from reserver.errors import ApiError
from reserver.k8s.objects.objects import encode
from reserver.k8s.objects.pods import PodObject
from reserver.moves.workloads import WantedPods, Workload, Workloads
from tests.unit.k8s.fakes import NO_ANSWER, ScriptedClient, refused
from tests.unit.moves.api_server import PODS, Document
from tests.unit.moves.world import World

KRUISE = "apps.kruise.io/v1alpha1"
WEB = Controller("CloneSet", "web")
SHOP_WEB = Workload("shop", WEB)
LISTED = {
    "kind": "APIResourceList",
    "resources": [
        {"name": "clonesets/status", "kind": "CloneSet"},
        {"name": "clonesets", "kind": "CloneSet"},
        {"name": "clonesets/scale", "kind": "Scale", "group": "autoscaling"},
        {"name": "sidecarsets", "kind": "SidecarSet"},
    ],
}
TWO = {"kind": "Scale", "spec": {"replicas": 2}}
SCALE = f"/apis/{KRUISE}/namespaces/shop/clonesets/web/scale"


def pod(controller: Controller = WEB, version: str = KRUISE) -> Pod:
    return Pod(
        name=PodName("shop", "web-0"), uid="u", controller=controller, controller_version=version
    )


def workloads(client: ScriptedClient, known: Pod | None = None) -> Workloads:
    known = known or pod()
    found = Workloads(client, {known.name: known})
    found.changed(None, known)
    return found


async def test_a_clone_set_is_asked_by_its_scale() -> None:
    client = ScriptedClient(LISTED, TWO, {"kind": "Scale", "spec": {}})
    asked = workloads(client)
    assert await asked.wants(SHOP_WEB) == WantedPods(2)
    assert await asked.wants(SHOP_WEB) == WantedPods(0)  # Go omits a zero.
    assert [each.path for each in client.requests] == [f"/apis/{KRUISE}", SCALE, SCALE]


async def test_it_is_asked_once_its_last_pod_has_gone() -> None:
    asked = workloads(ScriptedClient(LISTED, TWO))
    asked.changed(pod(), None)
    assert await asked.wants(SHOP_WEB) == WantedPods(2)


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ([LISTED, refused(404, "NotFound")], WantedPods(0)),
        ([LISTED, refused(403, "Forbidden")], None),
        ([LISTED, {"kind": "Status"}], None),
        ([LISTED, b"<html>"], None),
        ([refused(404, "NotFound")], None),
        ([refused(403, "Forbidden")], None),
        ([{"resources": [{"name": "clonesets", "kind": "CloneSet"}]}], None),
        ([{"resources": 7}], None),
    ],
    ids=[
        "the controller is gone",
        "without the right",
        "another object",
        "no object",
        "the API is gone",
        "without discovery",
        "a kind without scale",
        "no list",
    ],
)
async def test_what_is_answered_instead(answers: list[object], expected: WantedPods | None) -> None:
    assert await workloads(ScriptedClient(*answers)).wants(SHOP_WEB) == expected


async def test_without_an_answer_it_is_asked_again() -> None:
    with pytest.raises(ApiError):
        await workloads(ScriptedClient(NO_ANSWER)).wants(SHOP_WEB)


async def test_a_stateful_set_of_another_group_is_not_looked_for_in_apps() -> None:
    made = pod(Controller("StatefulSet", "web"), "apps.kruise.io/v1beta1")
    client = ScriptedClient({"resources": []})
    assert await workloads(client, made).wants(Workload("shop", made.controller)) is None
    assert [each.path for each in client.requests] == ["/apis/apps.kruise.io/v1beta1"]


@pytest.mark.parametrize("version", ["../../api/v1", "v1", "a/v1/../..", "A/v1", "a/v1?x=y"])
async def test_what_is_no_version_is_not_asked(version: str) -> None:
    client = ScriptedClient()
    assert await workloads(client, pod(version=version)).wants(SHOP_WEB) is None
    assert client.requests == []


async def test_a_name_stays_within_its_path() -> None:
    made = pod(Controller("CloneSet", "../secrets/x"))
    client = ScriptedClient(LISTED, TWO)
    await workloads(client, made).wants(Workload("shop", made.controller))
    assert client.requests[-1].path.endswith("/clonesets/..%2Fsecrets%2Fx/scale")


def test_a_pod_says_the_version_of_its_controller() -> None:
    owner = {
        "apiVersion": KRUISE,
        "kind": "CloneSet",
        "name": "web",
        "uid": "c",
        "controller": True,
    }
    raw = encode({"metadata": {"name": "web-0", "ownerReferences": [owner]}})
    read = msgspec.json.decode(raw, type=PodObject).value()
    assert (read.controller, read.controller_version) == (WEB, KRUISE)
    assert replace(read, controller_version="").controller == WEB


class CloneSetWorld(World):
    """A CloneSet that is scaled down while its pod moves."""

    def make_pod(self, node: str = "", of: str = "web") -> Document:
        made = super().make_pod(node, of)
        (owner,) = made["metadata"]["ownerReferences"]
        owner |= {"apiVersion": KRUISE, "kind": "CloneSet"}
        return self.api.put(PODS, made)


async def test_a_move_ends_as_not_replaced_if_the_clone_set_wants_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = CloneSetWorld()

    async def bounded(path: str, _: int) -> bytes:
        return await world.api.get(path)

    monkeypatch.setattr(world.api, "get_bounded", bounded)
    world.api.objects[f"/apis/{KRUISE}"] = LISTED
    world.api.objects[SCALE] = {"kind": "Scale", "spec": {"replicas": 0}}
    await world.start()
    world.move()
    for _ in range(30):
        world.watch()
        await world._reserver()
        world.api.now += 1.0
        if world.has_ended:
            break
    assert (world.status["phase"], world.status["reason"]) == ("Succeeded", "NotReplaced")
