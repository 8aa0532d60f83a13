"""Labels and annotations in files: applied, created, edited or refused."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from structlog.testing import capture_logs

from reserver.reservations.enums import StoreKind
from tests.integration.cli.manifests import manifest
from tests.integration.cli.runs import Run, runs_beside
from tests.integration.world import serving

KIND = {"apiVersion": "reserver.io/v1alpha1", "kind": "Reservation"}


def labelled(name: str, **labels: str) -> str:
    spec = yaml.safe_load(manifest("a"))["spec"]
    return yaml.safe_dump(KIND | {"metadata": {"name": name, "labels": labels}, "spec": spec})


async def labels_of(run: Run, name: str) -> dict[str, str]:
    told: dict[str, Any] = json.loads((await run("get", name, "-o", "json")).stdout)
    return dict(told["labels"])


@pytest.fixture
async def objects(tmp_path: Path) -> AsyncIterator[Run]:
    """Commands next to a Reserver that stores Reservation objects."""
    with capture_logs():  # They would stand among what a command prints.
        async with serving(tmp_path, "worker-1", store=StoreKind.OBJECT) as world:
            yield runs_beside(world)


async def test_labels_of_files_are_applied_created_and_edited(objects: Run) -> None:
    run = objects
    first = await run("apply", "-f", "-", text=labelled("a", team="shop"))
    assert first.stdout.startswith("a created: ")
    again = await run("apply", "-f", "-", text=labelled("a", team="shop"))
    assert again.stdout == "a unchanged\n"
    await run("update", "a", "--slots", "2")
    more = await run("apply", "-f", "-", text=labelled("a", tier="gold"))
    assert more.stdout.startswith("a configured: ")
    assert await labels_of(run, "a") == {"team": "shop", "tier": "gold"}
    assert (await run("create", "-f", "-", text=labelled("b", team="shop"))).exit_code == 0
    pair = f"{labelled('c', team='shop')}---\n{labelled('d', team='bank')}"
    assert (await run("create", "-f", "-", "--set", text=pair)).exit_code == 0
    names = (await run("get", "-l", "team=shop", "-o", "name")).stdout.split()
    assert names == [f"shop/{name}" for name in "abc"]
    printed = (await run("get", "d", "-o", "yaml")).stdout
    assert "reserver.io/set" in printed  # It is the server's own: what is printed can be read.
    copied = printed.replace("name: d", "name: e")
    assert (await run("create", "-f", "-", text=copied)).exit_code == 5  # No room yet.
    assert await labels_of(run, "e") == {"team": "bank"}
    flags = ("--dry-run", "-o", "json")
    shown = await run("create", "-f", "-", *flags, text=labelled("f", team="shop"))
    assert json.loads(shown.stdout)["metadata"]["labels"] == {"team": "shop"}
    edited = await run("edit", "a", EDITOR="sed -i s/^..tier:.gold/\\ \\ level:\\ high/")
    assert edited.stdout.startswith("a edited"), edited
    assert await labels_of(run, "a") == {"team": "shop", "level": "high"}
    wrong = await run("apply", "-f", "-", text=labelled("a", team="a b"))
    assert wrong.exit_code == 1
    assert "metadata.labels: 'a b' is not a label's value; use letters" in wrong.stderr


async def test_annotations_that_would_be_lost_are_refused(run: Run) -> None:
    def text(**annotations: str) -> str:
        metadata = {"name": "a", "annotations": annotations}
        spec = yaml.safe_load(manifest("a"))["spec"]
        return yaml.safe_dump(KIND | {"metadata": metadata, "spec": spec})

    for command in ("create", "apply"):
        refused = await run(command, "-f", "-", text=text(**{"example.com/why": "launch"}))
        assert refused.exit_code == 1
        said = (
            "metadata.annotations: example.com/why: reserver sends no annotations, so it would be"
        )
        assert f"{said} lost; write a label or spec.description" in refused.stderr
    printed = {"kubectl.kubernetes.io/last-applied-configuration": "{}", "reserver.io/a": "b"}
    assert (await run("apply", "-f", "-", text=text(**printed))).exit_code == 0


async def test_labels_of_what_is_written_into_a_config_map_are_refused(run: Run) -> None:
    text = yaml.safe_dump(yaml.safe_load(manifest("a")) | {"labels": {"team": "shop"}})
    refused = await run("apply", "-f", "-", text=text)
    assert refused.exit_code == 1
    assert "labels: a key of a ConfigMap has no labels; leave them out" in refused.stderr
