"""Bindings of pods: written fields, preconditions and refusals."""

from tests.contract.api import JSON_PATCH, STRATEGIC_PATCH, Api


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
