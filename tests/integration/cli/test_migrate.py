"""`reserver migrate` where there is nothing to move, or nowhere to move it to."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.cli.runs import Run, write
from tests.integration.world import World

GHOST, EMPTY = "configmap:shop/ghost", "configmap:reserver-system/empty"


@pytest.mark.parametrize(
    ("stores", "status", "line"),
    [
        ((GHOST, "crd:shop"), 2, f"--from: {GHOST}: is not there; kubectl get configmaps -n shop"),
        (("crd:shop", GHOST), 2, f"--to: {GHOST}: is not there; create it with the label reserv"),
        (("crd:shop", EMPTY), 0, "crd:shop has no reservations"),
    ],
)
async def test_a_store_that_is_not_there_or_empty_is_named(
    world: World, run: Run, tmp_path: Path, stores: tuple[str, str], status: int, line: str
) -> None:
    await write(world, "empty", {})
    source, destination = stores
    kubeconfig = str(tmp_path / "kubeconfig")
    result = await run("migrate", "--from", source, "--to", destination, KUBECONFIG=kubeconfig)
    assert result.exit_code == status
    assert result.stderr.startswith(f"reserver: {line}")
