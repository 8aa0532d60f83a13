"""Drains of a node: the cordon, the PodMoves and the result."""

from __future__ import annotations

import json

import pytest

from reserver.cli.failure import ExitStatus, Failed
from reserver.cli.output import Output
from reserver.moves.drain import DrainOptions
from reserver.moves.phases import MoveMode
from tests.unit.cli.moves.api import Api, drain, specs
from tests.unit.moves.test_drain import pod


def test_a_drain_cordons_and_moves_all_pods_as_one_group(
    capsys: pytest.CaptureFixture[str],
) -> None:
    api = Api(pod("a"), pod("b"), pod("d", "DaemonSet"))
    drain(api, DrainOptions(ignores_daemon_sets=True))
    assert api.nodes["/api/v1/nodes/worker-1"]["spec"] == {"unschedulable": True}
    first, second = specs(api)
    assert first["group"] == second["group"]
    assert (first["group"]["size"], first["timeout"]) == (2, "5m")
    assert [each["pod"] for each in (first, second)] == [
        {"name": "a", "uid": "uid-a"},
        {"name": "b", "uid": "uid-b"},
    ]
    assert capsys.readouterr().out.splitlines() == [
        "shop/d stays: its DaemonSet would recreate it here",
        "shop/a to worker-2 Succeeded: said",
        "shop/b to worker-2 Succeeded: said",
        "worker-1 drained",
    ]


def test_a_node_is_not_drained_while_another_move_has_one_of_its_pods(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The other move may wait weeks for its window."""
    with pytest.raises(Failed, match=r"^shop/a to worker-2 Aborted: said$"):
        drain(Api(pod("a"), phase="Aborted", reason="MovedAlready"))
    assert capsys.readouterr().out == ""
    drain(Api(pod("a"), phase="Aborted", reason="PodGone"))
    assert capsys.readouterr().out.endswith("worker-1 drained\n")


def test_a_trial_of_a_drain_names_its_pods_or_says_that_there_are_none(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for pods, said, errors in (((pod("a"),), "shop/a would move\n", ""),
                             ((), "", "reserver: worker-1: no pod would move\n")):  # fmt: skip
        api = Api(*pods)
        drain(api, dry_run=True)
        assert capsys.readouterr() == (said, errors)
        assert (specs(api), api.nodes["/api/v1/nodes/worker-1"].get("spec", {})) == ([], {})


def test_a_drain_that_surges_evicts_only_what_no_controller_makes_again() -> None:
    api = Api(pod("a"), pod("bare", ""))
    drain(api, DrainOptions(evicts_unmanaged=True), mode=MoveMode.SURGE_FIRST)
    assert [(each["pod"]["name"], each["mode"]) for each in specs(api)] == [
        ("a", "SurgeFirst"),
        ("bare", "EvictOnly"),
    ]


def test_what_a_drain_must_not_move_is_named_and_nothing_is_moved() -> None:
    api = Api(pod("a"), pod("b", ""))
    with pytest.raises(Failed, match="shop/b: no controller would replace it") as failed:
        drain(api)
    assert "nothing is moved; worker-1 is unchanged" in str(failed.value)
    assert specs(api) == []
    assert api.nodes["/api/v1/nodes/worker-1"] == {}


def test_a_pod_that_comes_just_before_the_cordon_is_judged_as_well() -> None:
    class Late(Api):
        async def patch(self, path: str, body: object) -> bytes:
            self.pods = (*self.pods, pod("late", ""))
            return await super().patch(path, body)

    with pytest.raises(Failed, match="worker-1 stays cordoned"):
        drain(Late(pod("a")))


def test_pods_that_nobody_makes_again_are_evicted_once_the_others_have_landed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    api = Api(pod("a", ""), pod("b"))
    drain(api, DrainOptions(evicts_unmanaged=True))
    managed, alone = specs(api)
    api = Api(pod("a", ""), pod("b"))
    capsys.readouterr()
    drain(api, DrainOptions(evicts_unmanaged=True), form=Output.JSON)
    assert json.loads(capsys.readouterr().out)["items"] == list(api.moves.values())
    assert managed["pod"]["name"] == "b"
    assert (alone["mode"], "group" in alone) == ("EvictOnly", False)


def test_if_one_move_cannot_be_written_the_others_are_taken_back() -> None:
    api = Api(pod("a"), pod("b"), pod("c"), most=2)
    with pytest.raises(Failed, match=r"shop/c: .*exceeded quota"):
        drain(api)
    assert api.moves == {}


def test_a_dry_run_changes_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    api = Api(pod("a"))
    drain(api, dry_run=True)
    assert (api.nodes["/api/v1/nodes/worker-1"], api.moves) == ({}, {})
    assert capsys.readouterr().out == "shop/a would move\n"


def test_a_node_that_is_not_there_is_told() -> None:
    api = Api()
    api.nodes.clear()
    with pytest.raises(Failed, match="there is no node 'worker-1'"):
        drain(api)


def test_moves_that_fail_are_named_once_with_their_reason(
    capsys: pytest.CaptureFixture[str],
) -> None:
    api = Api(pod("a"), phase="Failed")
    with pytest.raises(Failed, match="shop/a to worker-2 Failed: said") as failed:
        drain(api)
    assert capsys.readouterr().out == ""
    assert failed.value.status is ExitStatus.REFUSED
