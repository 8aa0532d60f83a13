"""Pods: what is filled in, binding, eviction, status and graceful deletion."""

import asyncio

from reserver.k8s.objects.times import parse_moment
from tests.contract.api import JSON_PATCH, STRATEGIC_PATCH, Api, pod


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


async def test_a_binding_is_one_write_with_its_annotations_and_labels(api: Api) -> None:
    made = await api.pod("one", annotations={"a": "1", "b": "1"}, labels={"l": "1"})
    query = {"resourceVersion": made.revision, "fieldSelector": "metadata.name=one"}
    async with api.watch(api.path("pods"), **query) as watching:
        answer = await api.bind(
            "one",
            api.nowhere,
            uid=made.body["metadata"]["uid"],
            annotations={"b": "2", "c": "2"},
            labels={"m": "2"},
        )
        assert answer.status == 201
        assert (answer.body["kind"], answer.body["status"]) == ("Status", "Success")
        assert answer.body["code"] == 201
        kind, bound = await watching.next()
    assert kind == "MODIFIED"
    assert bound["spec"]["nodeName"] == api.nowhere
    assert bound["metadata"]["annotations"] == {"a": "1", "b": "2", "c": "2"}
    assert bound["metadata"]["labels"] == {"l": "1", "m": "2"}
    assert bound["metadata"]["generation"] == 1
    (condition,) = bound["status"]["conditions"]
    assert (condition["type"], condition["status"]) == ("PodScheduled", "True")
    assert condition["lastProbeTime"] is None
    assert condition["lastTransitionTime"]


async def test_a_binding_clears_the_nomination_and_the_refusal(api: Api) -> None:
    await api.pod("one")
    refusal = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "x"}
    status = {"status": {"nominatedNodeName": "somewhere", "conditions": [refusal]}}
    patched = await api.patch(api.path("pods", "one", "status"), status, STRATEGIC_PATCH)
    assert patched.body["status"]["nominatedNodeName"] == "somewhere"
    await api.bind("one", api.nowhere)
    bound = (await api.get(api.path("pods", "one"))).body
    assert "nominatedNodeName" not in bound["status"]
    (condition,) = bound["status"]["conditions"]
    assert condition["status"] == "True"
    assert "reason" not in condition


async def test_a_pod_is_bound_once(api: Api) -> None:
    await api.pod("one")
    await api.bind("one", api.nowhere)
    for node in (api.nowhere, "other"):
        again = await api.bind("one", node)
        assert again.outline == (409, "Conflict")
        assert again.body["message"] == (
            'Operation cannot be fulfilled on pods/binding "one": '
            f'pod one is already assigned to node "{api.nowhere}"'
        )
        assert again.body["details"] == {"name": "one", "kind": "pods/binding"}


async def test_a_binding_presumes_uid_and_revision(api: Api) -> None:
    made = await api.pod("one")
    other = await api.bind("one", api.nowhere, uid="11111111-2222-3333-4444-555555555555")
    assert other.outline == (409, "Conflict")
    assert "Precondition failed: UID in precondition: 1111" in other.body["message"]
    await api.patch(api.path("pods", "one"), {"metadata": {"labels": {"a": "b"}}})
    stale = await api.bind("one", api.nowhere, resourceVersion=made.revision)
    assert stale.outline == (409, "Conflict")
    assert "nodeName" not in (await api.get(api.path("pods", "one"))).body["spec"]


async def test_a_binding_needs_a_pod_and_a_target(api: Api) -> None:
    missing = await api.bind("none", api.nowhere)
    assert missing.outline == (404, "NotFound")
    assert missing.body["message"] == 'pods "none" not found'
    await api.pod("one")
    body = {"metadata": {"name": "two"}, "target": {"name": api.nowhere}}
    other = await api.post(api.path("pods", "one", "binding"), body)
    assert other.outline == (400, "BadRequest")
    for target in ({}, {"kind": "Pod", "name": "x"}):
        body = {"metadata": {"name": "one"}, "target": target}
        assert (await api.post(api.path("pods", "one", "binding"), body)).status == 500


async def test_a_pod_that_goes_is_not_bound(api: Api) -> None:
    await api.pod("one", finalizers=["example.com/hold"])
    await api.delete(api.path("pods", "one"))
    answer = await api.bind("one", api.nowhere)
    assert answer.outline == (409, "Conflict")
    assert "pod one is being deleted, cannot be assigned to a host" in answer.body["message"]
    await api.patch(api.path("pods", "one"), {"metadata": {"finalizers": None}})


async def test_a_gated_pod_is_not_bound(api: Api) -> None:
    made = await api.pod("one", {"schedulingGates": [{"name": "example.com/gate"}]})
    (condition,) = made.body["status"]["conditions"]
    assert (condition["type"], condition["reason"]) == ("PodScheduled", "SchedulingGated")
    answer = await api.bind("one", api.nowhere)
    assert answer.outline == (409, "Conflict")
    assert "pod one has non-empty .spec.schedulingGates" in answer.body["message"]
    opened = await api.patch(
        api.path("pods", "one"), [{"op": "remove", "path": "/spec/schedulingGates"}], JSON_PATCH
    )
    assert opened.status == 200
    assert opened.body["metadata"]["generation"] == 2
    assert (await api.bind("one", api.nowhere)).status == 201


async def test_an_unbound_pod_is_deleted_at_once(api: Api) -> None:
    made = await api.pod("one")
    query = {"resourceVersion": made.revision, "fieldSelector": "metadata.name=one"}
    async with api.watch(api.path("pods"), **query) as watching:
        gone = await api.delete(api.path("pods", "one"))
        assert gone.body["kind"] == "Pod"
        assert gone.body["metadata"]["deletionGracePeriodSeconds"] == 0
        kind, marked = await watching.next()
        assert (kind, marked["metadata"]["deletionGracePeriodSeconds"]) == ("MODIFIED", 0)
        kind, _ = await watching.next()
        assert kind == "DELETED"


async def test_a_bound_pod_gets_time_to_go(api: Api) -> None:
    await api.pod("one")
    await api.bind("one", api.nowhere)
    path = api.path("pods", "one")
    first = await api.delete(path)
    metadata = first.body["metadata"]
    assert first.status == 200
    assert metadata["deletionGracePeriodSeconds"] == 30
    assert metadata["deletionTimestamp"] > metadata["creationTimestamp"]
    assert metadata["generation"] == 2
    again = await api.delete(path)
    assert again.body["metadata"]["resourceVersion"] == first.revision
    longer = await api.delete(path, gracePeriodSeconds="60")
    assert longer.body["metadata"]["deletionGracePeriodSeconds"] == 30
    shorter = await api.delete(path, {"gracePeriodSeconds": 10})
    assert shorter.body["metadata"]["deletionGracePeriodSeconds"] == 10
    assert shorter.body["metadata"]["generation"] == 2
    final = await api.delete(path, {"gracePeriodSeconds": 0})
    assert final.status == 200
    assert (await api.get(path)).status == 404


async def test_who_deletes_it_again_shortens_a_grace_period_of_a_year(api: Api) -> None:
    """A second DELETE shortens the grace period of a borrower (`PodWrites.recall`)."""
    year = 31_536_000
    made = await api.pod("one", {"terminationGracePeriodSeconds": year})
    await api.bind("one", api.nowhere)
    path = api.path("pods", "one")
    first = (await api.delete(path)).body["metadata"]
    assert first["deletionGracePeriodSeconds"] == year
    other = {"preconditions": {"uid": "another"}, "gracePeriodSeconds": 120}
    assert (await api.delete(path, other)).outline == (409, "Conflict")
    again = {"preconditions": {"uid": made.body["metadata"]["uid"]}, "gracePeriodSeconds": 120}
    shown = (await api.delete(path, again)).body["metadata"]
    assert shown["deletionGracePeriodSeconds"] == 120
    ends_at = [parse_moment(each["deletionTimestamp"]) for each in (first, shown)]
    assert ends_at[0] - ends_at[1] == year - 120
    await api.delete(path, gracePeriodSeconds="0")


async def test_a_finished_pod_is_deleted_at_once(api: Api) -> None:
    await api.pod("one")
    await api.bind("one", api.nowhere)
    done = {"status": {"phase": "Succeeded"}}
    assert (await api.patch(api.path("pods", "one", "status"), done)).status == 200
    await api.delete(api.path("pods", "one"))
    assert (await api.get(api.path("pods", "one"))).status == 404


async def test_an_eviction_deletes_gracefully_and_says_why(api: Api) -> None:
    made = await api.pod("one")
    await api.bind("one", api.nowhere)
    path = api.path("pods", "one", "eviction")
    body = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": "one", "namespace": api.namespace},
    }
    wrong = {"deleteOptions": {"preconditions": {"uid": "someone-else"}}}
    assert (await api.post(path, {**body, **wrong})).outline == (409, "Conflict")
    trial = await api.post(path, {**body, "deleteOptions": {"dryRun": ["All"]}})
    assert trial.status == 201
    assert "deletionTimestamp" not in (await api.get(api.path("pods", "one"))).body["metadata"]
    uid = {"deleteOptions": {"preconditions": {"uid": made.body["metadata"]["uid"]}}}
    answer = await api.post(path, {**body, **uid})
    assert answer.status == 201
    assert answer.body["status"] == "Success"
    going = (await api.get(api.path("pods", "one"))).body
    assert going["metadata"]["deletionGracePeriodSeconds"] == 30
    conditions = {c["type"]: c for c in going["status"]["conditions"]}
    assert conditions["DisruptionTarget"]["reason"] == "EvictionByEvictionAPI"
    await api.delete(api.path("pods", "one"), gracePeriodSeconds="0")


async def test_an_eviction_of_nobody_is_not_found(api: Api) -> None:
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "none"}}
    answer = await api.post(api.path("pods", "none", "eviction"), body)
    assert answer.outline == (404, "NotFound")


async def test_an_eviction_of_an_unbound_pod_removes_it(api: Api) -> None:
    await api.pod("one")
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "one"}}
    assert (await api.post(api.path("pods", "one", "eviction"), body)).status == 201
    assert (await api.get(api.path("pods", "one"))).status == 404


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
    assert (await api.patch(f"{path}/status", poke)).outline == (422, "Invalid")


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
