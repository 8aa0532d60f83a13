"""`update` changes the fields that flags give."""

from __future__ import annotations

import pytest

from tests.integration.cli.manifests import manifest, spec_of
from tests.integration.cli.runs import Run


@pytest.mark.parametrize(
    ("flags", "changed"),
    [
        ("--cpu 2 --slots 2", {"resources": {"cpu": "2"}, "slots": 2}),
        ("--memory 1Gi", {"resources": {"cpu": "1", "memory": "1Gi"}}),
        ("--node worker-2", {"node": "worker-2"}),
        ("--reusable --preemptible --priority 7", {"reusable": True, "preemptible": True}),
        ("--owner app=web -n shop", {"owners": [
            {"selector": {"matchLabels": {"app": "web"}, "namespace": "shop"}}
        ]}),
        ("--expires-at 2100-01-31T10:00:00Z", {"expiresAt": "2100-01-31T10:00:00Z"}),
        ("--ttl 0", {"ttl": "0"}),
        ("--node-selector kubernetes.io/hostname=worker-2",
         {"placement": {"nodeSelector": {"kubernetes.io/hostname": "worker-2"}}}),
    ],
)  # fmt: skip
async def test_update_changes_what_flags_give_and_nothing_else(
    run: Run, flags: str, changed: dict[str, object]
) -> None:
    await run("apply", "-f", "-", text=manifest("a"))
    before = await spec_of(run, "a")
    done = await run("update", "a", *flags.split())
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout.startswith("a updated: ")
    after = await spec_of(run, "a")
    assert {name: after[name] for name in changed} == changed
    rest = set(before) - set(changed) - ({"expiresAt"} if "ttl" in changed else set())
    rest -= {"node"} if "placement" in changed else set()
    assert {name: after.get(name) for name in rest} == {name: before[name] for name in rest}


async def test_update_wants_a_flag_and_a_reservation_that_fits(run: Run) -> None:
    await run("apply", "-f", "-", text=manifest("a"))
    assert "no change is given" in (await run("update", "a")).stderr
    ghost = await run("update", "b", "--cpu", "1")
    assert (ghost.exit_code, ghost.stderr) == (1, "reserver: there is no reservation 'b'\n")
    huge = await run("update", "a", "--cpu", "64")
    assert (huge.exit_code, huge.stdout) == (4, "")
    assert huge.stderr == "reserver: a: spec: worker-1 offers too little cpu (4 of 64)\n"
    wrong = await run("update", "a", "--cpu", "lots")
    assert wrong.exit_code == 2
    assert wrong.stderr.startswith("reserver: --cpu: 'lots' is not a quantity")
