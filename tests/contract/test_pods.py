"""Pods: defaults, validation, status, and the fields that are fixed."""

import asyncio

from reserver.errors import ApiError
from tests.contract.api import JSON_PATCH, Api, pod


async def test_a_new_pod_gets_defaults(api: Api) -> None:
    made = (await api.pod("one")).body
    spec = made["spec"]
    assert made["metadata"]["generation"] == 1
    assert made["status"] == {"phase": "Pending", "qosClass": "BestEffort"}
    assert spec["restartPolicy"] == "Always"
    assert spec["dnsPolicy"] == "ClusterFirst"
    assert spec["terminationGracePeriodSeconds"] == 30
    assert spec["securityContext"] == {}
    assert spec["enableServiceLinks"] is True
    assert (spec["priority"], spec["preemptionPolicy"]) == (0, "PreemptLowerPriority")
    (container,) = spec["containers"]
    assert container["imagePullPolicy"] == "IfNotPresent"
    assert container["terminationMessagePath"] == "/dev/termination-log"
    assert container["terminationMessagePolicy"] == "File"
    assert container["resources"] == {}
    assert spec["tolerations"] == [
        {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
        for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
    ]


async def test_the_scheduler_is_default_scheduler_unless_named(api: Api) -> None:
    body = pod("one")
    del body["spec"]["schedulerName"]
    answer = await api.post(api.path("pods"), body, dryRun="All")
    assert answer.body["spec"]["schedulerName"] == "default-scheduler"


async def test_requests_default_to_limits_and_quantities_are_canonical(api: Api) -> None:
    resources = {
        "requests": {"cpu": 0.5},
        "limits": {"cpu": "1000m", "memory": "1024Mi", "nvidia.com/gpu": 2},
    }
    containers = [{"name": "a", "image": "a:1", "resources": resources}]
    made = await api.pod("one", {"containers": containers})
    assert made.body["spec"]["containers"][0]["resources"] == {
        "requests": {"cpu": "500m", "memory": "1Gi", "nvidia.com/gpu": "2"},
        "limits": {"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": "2"},
    }
    assert made.body["status"]["qosClass"] == "Burstable"


async def test_equal_requests_and_limits_are_guaranteed(api: Api) -> None:
    resources = {"limits": {"cpu": "1", "memory": "1Gi"}}
    containers = [{"name": "a", "image": "a:1", "resources": resources}]
    made = await api.pod("one", {"containers": containers})
    assert made.body["status"]["qosClass"] == "Guaranteed"


async def test_a_client_cannot_create_a_status(api: Api) -> None:
    answer = await api.post(api.path("pods"), {**pod("one"), "status": {"phase": "Running"}})
    assert answer.body["status"]["phase"] == "Pending"


async def test_a_pod_without_containers_is_invalid(api: Api) -> None:
    answer = await api.post(api.path("pods"), pod("one", {"containers": []}))
    assert answer.outline == (422, "Invalid")
    assert "spec.containers: Required value" in answer.body["message"]


async def test_a_priority_class_gives_the_priority(api: Api) -> None:
    made = await api.pod("one", {"priorityClassName": "system-node-critical"})
    assert made.body["spec"]["priority"] == 2000001000
    unknown = await api.post(api.path("pods"), pod("two", {"priorityClassName": "none"}))
    assert unknown.outline == (403, "Forbidden")
    other = await api.post(api.path("pods"), pod("two", {"priority": 7}))
    assert other.outline == (403, "Forbidden")


async def test_priority_classes_can_be_made(api: Api) -> None:
    path = "/apis/scheduling.k8s.io/v1/priorityclasses"
    body = {"metadata": {"name": api.namespace}, "value": 1000}
    made = await api.post(path, body)
    assert made.status == 201
    assert made.body["apiVersion"] == "scheduling.k8s.io/v1"
    assert made.body["preemptionPolicy"] == "PreemptLowerPriority"
    one = pod("one", {"priorityClassName": api.namespace})
    async with asyncio.timeout(20):
        # The real server's admission learns of the class by a watch.
        while (answer := await api.post(api.path("pods"), one)).status == 403:
            continue
    assert answer.body["spec"]["priority"] == 1000
    assert (await api.delete(f"{path}/{api.namespace}")).status == 200


async def test_status_and_the_rest_are_written_apart(api: Api) -> None:
    await api.pod("one")
    both = {"metadata": {"labels": {"a": "b"}}, "status": {"message": "hello"}}
    main = await api.patch(api.path("pods", "one"), both)
    assert main.body["metadata"]["labels"] == {"a": "b"}
    assert "message" not in main.body["status"]
    both = {"spec": {"activeDeadlineSeconds": 100}, "status": {"message": "hello"}}
    status = await api.patch(api.path("pods", "one", "status"), both)
    assert status.body["status"]["message"] == "hello"
    assert "activeDeadlineSeconds" not in status.body["spec"]


async def test_the_status_takes_annotations_of_the_pod_that_is_meant(api: Api) -> None:
    """Reserver has kube-scheduler retry a pod, without the right to patch pods."""
    made = (await api.pod("one")).body
    path, seen = api.path("pods", "one"), made["metadata"]["resourceVersion"]
    meant = {"uid": made["metadata"]["uid"], "annotations": {"reserver.io/retry": "1.000"}}
    async with api.watch(api.path("pods"), resourceVersion=seen) as watching:
        spec = {"containers": [{"name": "main", "image": "another"}]}
        answer = await api.patch(f"{path}/status", {"metadata": meant, "spec": spec})
        assert answer.status == 200
        kind, shown = await watching.next()
    assert (kind, shown["metadata"]["annotations"]) == ("MODIFIED", meant["annotations"])
    assert shown["spec"] == made["spec"]  # The image is what it was.
    poke = {"metadata": {"uid": "another", "annotations": {"reserver.io/retry": "2.000"}}}
    answer = await api.patch(f"{path}/status", poke)
    assert answer.outline == (422, "Invalid")
    assert ApiError(422, "Invalid", answer.body["message"]).is_absent


async def test_conditions_show_times_that_they_lack(api: Api) -> None:
    await api.pod("one")
    path = api.path("pods", "one")
    condition = {"type": "example.com/a", "status": "True"}
    status = await api.patch(f"{path}/status", {"status": {"conditions": [condition]}})
    (shown,) = status.body["status"]["conditions"]
    times = {"lastProbeTime": None, "lastTransitionTime": None}
    assert shown == {**condition, **times}
    assert (await api.patch(path, {"metadata": {"labels": None}})).revision == status.revision
    assert (await api.put(path, status.body)).revision == status.revision


async def test_annotations_can_be_written_with_the_status(api: Api) -> None:
    await api.pod("one")
    both = {"metadata": {"annotations": {"a": "b"}}, "status": {"nominatedNodeName": "n"}}
    answer = await api.patch(api.path("pods", "one", "status"), both)
    assert answer.body["metadata"]["annotations"] == {"a": "b"}
    assert answer.body["status"]["nominatedNodeName"] == "n"
    assert answer.body["status"]["qosClass"] == "BestEffort"


async def test_most_of_a_spec_is_fixed(api: Api) -> None:
    await api.pod("one")
    path = api.path("pods", "one")
    for change in ({"nodeName": "n"}, {"nodeSelector": {"a": "b"}}, {"priority": 7}):
        answer = await api.patch(path, {"spec": change})
        assert answer.outline == (422, "Invalid")
        assert "pod updates may not change fields other than" in answer.body["message"]
    image = [{"op": "replace", "path": "/spec/containers/0/image", "value": "other:1"}]
    changed = await api.patch(path, image, JSON_PATCH)
    assert changed.body["spec"]["containers"][0]["image"] == "other:1"
    assert changed.body["metadata"]["generation"] == 2


async def test_a_pod_can_be_replaced_with_itself_and_a_label(api: Api) -> None:
    made = await api.pod("one")
    made.body["metadata"]["labels"] = {"a": "b"}
    answer = await api.put(api.path("pods", "one"), made.body)
    assert answer.status == 200
    assert answer.body["metadata"]["labels"] == {"a": "b"}
    assert answer.body["metadata"]["generation"] == 1
