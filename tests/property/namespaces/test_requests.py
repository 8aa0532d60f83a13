"""ProvisioningRequests: independent of another namespace with equal names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from reserver.cluster.pod import PodName
from reserver.k8s.objects.objects import decode, encode
from reserver.provisioning.codec import RequestObject
from reserver.provisioning.observe import KnownRequests
from reserver.reservations.reservation import Ref
from tests.property.namespaces.histories import HERE, same, spaces

# ProvisioningRequests.

request_events = st.tuples(
    spaces, st.tuples(st.sampled_from(["q-0", "q-1"]), st.booleans(), st.booleans())
)


@given(st.lists(request_events, max_size=20))
def test_provisioning_requests_are_found_by_names_of_their_own_namespace(
    history: list[tuple[str, tuple[str, bool, bool]]],
) -> None:
    def shown(played: Sequence[tuple[str, tuple[str, bool, bool]]]) -> Any:
        touched: list[PodName] = []
        requests = KnownRequests(touched.append)
        for revision, (space, (name, is_there, is_new)) in enumerate(played, 1):
            if not is_there:
                requests.drop(PodName(space, name))
                continue
            metadata = {
                "name": name,
                "namespace": space,
                "uid": f"uid-{name}-{is_new}",
                "resourceVersion": str(revision),
                "creationTimestamp": "2030-01-01T00:00:00Z",
            }
            spec = {
                "provisioningClassName": "hold.reserver.io",
                "podSets": [{"podTemplateRef": {"name": "t"}, "count": 1}],
            }
            requests.put(decode(RequestObject, encode({"metadata": metadata, "spec": spec})))
        known = [each.request for each in requests if each.request.name.namespace == HERE]
        return (
            known,
            [requests.gone(PodName(HERE, name)) for name in ("q-0", "q-1")],
            [requests.of(Ref.of_object(HERE, name)) for it in known for name in it.reservations()],
            [name for name in touched if name.namespace == HERE],
        )

    same(history, shown)
