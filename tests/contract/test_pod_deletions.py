"""Deletions and evictions of pods: graceful where a kubelet would end them."""

from reserver.k8s.objects.times import parse_moment
from tests.contract.api import Api


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
