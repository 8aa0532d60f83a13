"""`reserver migrate` where there is nothing to move, or nowhere to move it to."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.cli.runs import Run, write
from tests.integration.world import World


@pytest.mark.parametrize(
    ("source", "destination", "status", "line"),
    [
        (
            "configmap:shop/ghost",
            "crd:shop",
            2,
            "--from: configmap:shop/ghost: is not there; kubectl get configmaps -n shop lists",
        ),
        (
            "crd:shop",
            "configmap:shop/ghost",
            2,
            "--to: configmap:shop/ghost: is not there; create it with the label reserver.io/store=",
        ),
        ("crd:shop", "configmap:reserver-system/empty", 0, "crd:shop has no reservations"),
    ],
)
async def test_what_is_not_there_is_named(
    world: World, run: Run, tmp_path: Path, source: str, destination: str, status: int, line: str
) -> None:
    await write(world, "empty", {})
    arguments = ("migrate", "--from", source, "--to", destination)
    result = await run(*arguments, KUBECONFIG=str(tmp_path / "kubeconfig"))
    assert result.exit_code == status
    assert result.stderr.startswith(f"reserver: {line}")
