"""Drains of pods of several namespaces, as groups of PodMoves."""

from __future__ import annotations

from typing import Any

import pytest

from reserver.cli.failure import Failed
from reserver.errors import ApiError
from tests.unit.cli.moves.api import Api, drain, specs
from tests.unit.moves.test_drain import pod


def elsewhere(name: str) -> dict[str, Any]:
    """Return a pod of another namespace."""
    made = pod(name)
    return made | {"metadata": made["metadata"] | {"namespace": "blog"}}


def test_a_drain_of_pods_of_several_namespaces_says_first_which_moves_are_its_group() -> None:
    api = Api(pod("a"), elsewhere("a"))
    drain(api)
    (group,) = api.groups
    names = [each["metadata"]["name"] for each in api.moves.values()]
    assert group["spec"]["members"] == [
        {"namespace": "blog", "name": names[0], "uid": "uid-a"},
        {"namespace": "shop", "name": names[1], "uid": "uid-a"},
    ]
    for spec in specs(api):
        assert spec["group"] == {
            "name": group["metadata"]["name"],
            "size": 2,
            "acrossNamespaces": True,
        }


CANNOT = 'podmovegroups.reserver.io is forbidden: User "jane" cannot create resource'


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (ApiError(404, "NotFound", "no such resource"), "no PodMoveGroups.*of this version"),
        (ApiError(403, "Forbidden", CANNOT), "ClusterRole reserver-move-groups"),
    ],
)
def test_without_the_right_to_declare_a_group_nothing_is_written(
    error: ApiError, message: str
) -> None:
    api = Api(pod("a"), elsewhere("b"))
    api.no_group = error
    with pytest.raises(Failed, match=message):
        drain(api)
    assert api.moves == {}
    drain(Api(pod("a"), pod("b")))  # Of one namespace no right is needed.


def test_two_drains_are_two_groups() -> None:
    api = Api(pod("a"))
    drain(api)
    drain(api)
    first, second = specs(api)
    assert first["group"]["name"] != second["group"]["name"]
