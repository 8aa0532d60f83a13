"""`create` and `apply` with --dry-run print their result and write nothing."""

from __future__ import annotations

import yaml

from tests.integration.cli.manifests import OWNERS, manifest, spec_of
from tests.integration.cli.runs import Run


async def test_a_dry_run_of_apply_says_what_it_would_do(run: Run) -> None:
    await run("apply", "-f", "-", text=manifest("a"))
    text = f"{manifest('a', slots=2)}---\n{manifest('b')}"
    told = await run("apply", "-f", "-", "--dry-run", text=text)
    assert told.stdout == "a configured (dry run)\nb created (dry run)\n"
    assert (await run("get", "-o", "name")).stdout.split() == ["reserver-system/reservations/a"]
    assert (await spec_of(run, "a"))["slots"] == 1


FLAGS = "create a --node worker-1 --owner pod/web-0 -n shop --cpu 1 --ttl 1h"


async def test_a_dry_run_prints_a_manifest_that_both_apply(run: Run) -> None:
    told = await run(*FLAGS.split(), "--dry-run", "-o", "yaml")
    assert yaml.safe_load(told.stdout) == {
        "apiVersion": "reserver.io/v1alpha1",
        "kind": "Reservation",
        "metadata": {"name": "a", "namespace": "shop"},
        "spec": {"owners": OWNERS, "node": "worker-1", "resources": {"cpu": "1"}, "ttl": "1h"},
    }
    assert (await run(*FLAGS.split(), "--dry-run=client", "-o", "yaml")).stdout == told.stdout
    assert (await run(*FLAGS.split(), "--dry-run")).stdout == "a created (dry run)\n"
    assert (await run("get", "-o", "name")).stdout == ""
    away = await run(*FLAGS.split(), "--dry-run", "-o", "yaml", RESERVER_ADDRESS="127.0.0.1:1")
    assert away.stdout == told.stdout
    two = await run(
        "create", "-f", "-", "--dry-run", "-o", "yaml", text=f"{told.stdout}---\n{manifest('b')}"
    )
    assert [each["metadata"]["name"] for each in yaml.safe_load_all(two.stdout)] == ["a", "b"]
    assert (
        "created: 1 CPU on worker-1 held"
        in (await run("apply", "-f", "-", text=told.stdout)).stdout
    )


async def test_a_dry_run_of_the_server_says_what_would_become_of_it(run: Run) -> None:
    told = await run(*FLAGS.split(), "--dry-run=server")
    assert told.stdout.splitlines()[1].split() == ["a", "worker-1", "yes"]
    wrong = await run(*FLAGS.split(), "--dry-run=maybe")
    assert "--dry-run: 'maybe' is not supported; write one of none, client, server" in wrong.stderr
