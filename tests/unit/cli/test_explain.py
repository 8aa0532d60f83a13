"""The output of `reserver explain pod`, and the names that it accepts."""

import json
from typing import Any

import pytest
from typer.testing import CliRunner

from reserver.cli.explain import _show_explanation as show
from reserver.cli.main import app
from reserver.k8s.objects.objects import encode
from reserver.scheduling.explain import explain
from tests.builders import NOW, node, pod, reservation, state_of


def explained() -> dict[str, Any]:
    full = [pod(f"b{number}", node=f"w{number}", cpu="3") for number in range(2, 12)]
    holds = [
        reservation("web", node="w1", owners=("x",), expires=NOW + 90, cpu="3"),
        reservation("[bold]", node="w1", owners=("x",), cpu="1"),
        reservation("seat", node="w2", cpu="1", expires=NOW + 90_000),
    ]
    nodes = [node(f"w{number}", cpu="4") for number in range(1, 12)]
    found = explain(pod("owner", cpu="2"), state_of(*nodes, *full, *holds), NOW)
    return json.loads(encode(found))  # type: ignore[no-any-return]


def test_a_table_names_reasons_reservations_and_the_time_left(
    capsys: pytest.CaptureFixture[str],
) -> None:
    show(explained())
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert lines[0] == (
        "shop/owner: 0/11 nodes are available: 10 Insufficient cpu, "
        "1 capacity held by reservations."
    )
    assert "10 Insufficient cpu w2, w3, w4, w5, w6, …" in lines
    assert "1 capacity held by reservations w1" in lines
    assert "shop/store/web w1 1m30s" in lines
    assert "shop/store/[bold] w1 no end" in lines
    assert lines.index("HELD FOR IT NODE ENDS IN") < lines.index("shop/store/seat w2 1d1h")


@pytest.mark.parametrize("name", ["/web", "shop/", "a/b/c", ""])
def test_what_names_no_pod_is_refused(name: str) -> None:
    result = CliRunner().invoke(app, ["explain", "pod", name, "--address", "127.0.0.1:1"])
    assert result.exit_code == 2
    assert "NAMESPACE/NAME" in result.stderr


def test_a_pod_with_resource_claims_is_told_what_is_not_judged(
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = explain(pod("a", devices=True), state_of(node("w1")), NOW)
    show(json.loads(encode(found)))
    assert "It has ResourceClaims: kube-scheduler finds their devices." in capsys.readouterr().out
    show(explained())
    assert "ResourceClaims" not in capsys.readouterr().out
