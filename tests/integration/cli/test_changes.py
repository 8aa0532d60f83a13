"""`apply`, `update`, `edit` and `create --dry-run`: what they change, keep and print."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
import tempfile
from pathlib import Path

import pytest
import yaml
from structlog.testing import capture_logs

from reserver.reservations.enums import StoreKind
from tests.integration.cli.runs import Run, runs_beside, untimed
from tests.integration.world import OBJECTS, World, serving

OWNERS = [{"pod": {"name": "web-0", "namespace": "shop"}}]


def manifest(name: str, **spec: object) -> str:
    whole = {"owners": OWNERS, "node": "worker-1", "resources": {"cpu": "1"}, **spec}
    return yaml.safe_dump({"name": name, "spec": whole})


async def spec_of(run: Run, name: str) -> dict[str, object]:
    told: dict[str, object] = json.loads((await run("get", name, "-o", "json")).stdout)["spec"]
    return told


async def test_what_is_applied_again_stays_as_it_is(run: Run) -> None:
    text = f"{manifest('a', ttl='1h')}---\n{manifest('b')}"
    first = await run("apply", "-f", "-", text=text)
    assert untimed(first.stdout) == (
        "a created: 1 CPU on worker-1 held for shop/pod/web-0, until T\n"
        "b created: 1 CPU on worker-1 held for shop/pod/web-0, until T\n"
    )
    before = [await spec_of(run, name) for name in ("a", "b")]
    again = await run("apply", "-f", "-", text=text)
    assert (again.exit_code, again.stdout) == (0, "a unchanged\nb unchanged\n")
    assert [await spec_of(run, name) for name in ("a", "b")] == before
    said = await run("apply", "-f", "-", text=manifest("b", description="for the move"))
    assert said.stdout.startswith("b configured: ")
    assert (await spec_of(run, "b"))["description"] == "for the move"
    other = await run("apply", "-f", "-", text=text.replace("'1'", "'2'"))
    line = untimed(other.stdout).splitlines()[0]
    assert line == "a configured: 2 CPUs on worker-1 held for shop/pod/web-0, until T"
    assert (await spec_of(run, "a"))["resources"] == {"cpu": "2"}
    assert (await spec_of(run, "a"))["expiresAt"] == before[0]["expiresAt"]


async def test_what_extend_gave_is_kept_by_apply_and_a_moment_is_put_back(run: Run) -> None:
    await run("apply", "-f", "-", text=manifest("a", ttl="1h"))
    await run("extend", "a", "--ttl", "5h")
    longer = (await spec_of(run, "a"))["expiresAt"]
    assert (await run("apply", "-f", "-", text=manifest("a", ttl="1h"))).stdout == "a unchanged\n"
    assert (await spec_of(run, "a"))["expiresAt"] == longer
    until = manifest("a", expiresAt="2100-01-31T10:00:00Z")
    assert "configured" in (await run("apply", "-f", "-", text=until)).stdout
    assert (await spec_of(run, "a"))["expiresAt"] == "2100-01-31T10:00:00Z"
    assert (await run("apply", "-f", "-", text=until)).stdout == "a unchanged\n"
    assert "for ever" in (await run("apply", "-f", "-", text=manifest("a", ttl=0))).stdout


async def test_a_dry_run_of_apply_says_what_it_would_do(run: Run) -> None:
    await run("apply", "-f", "-", text=manifest("a"))
    text = f"{manifest('a', slots=2)}---\n{manifest('b')}"
    told = await run("apply", "-f", "-", "--dry-run", text=text)
    assert told.stdout == "a configured (dry run)\nb created (dry run)\n"
    assert (await run("get", "-o", "name")).stdout.split() == ["reserver-system/reservations/a"]
    assert (await spec_of(run, "a"))["slots"] == 1


async def test_of_several_one_that_is_refused_costs_no_other(run: Run) -> None:
    huge = manifest("huge", resources={"cpu": "64"})
    done = await run("apply", "-f", "-", text=f"{huge}---\n{manifest('b')}")
    assert done.exit_code == 4
    assert done.stdout.startswith("b created: ")
    assert "huge: worker-1 offers too little cpu (4 of 64); it would never fit" in done.stderr
    broken = await run(
        "apply", "-f", "-", text=f"{manifest('b', slots=7)}---\n{manifest('c', x=1)}"
    )
    assert (broken.exit_code, broken.stdout) == (1, "")
    assert (await spec_of(run, "b"))["slots"] == 1


async def test_what_was_printed_and_changed_since_is_not_applied(run: Run) -> None:
    await run("apply", "-f", "-", text=manifest("a"))
    printed = (await run("get", "a", "-o", "yaml")).stdout
    await run("update", "a", "--slots", "3")
    late = await run("apply", "-f", "-", text=printed.replace("cpu: '1'", "cpu: '2'"))
    assert late.exit_code == 1
    assert "was changed meanwhile" in late.stderr
    assert (await spec_of(run, "a"))["slots"] == 3


async def test_reservation_objects_are_applied_where_they_are(tmp_path: Path) -> None:
    async with serving(tmp_path, "worker-1", store=StoreKind.OBJECT) as world:
        run = runs_beside(world)
        path = OBJECTS.replace("reserver-system", "shop")
        body = json.loads(
            (
                await run(
                    "create",
                    "a",
                    "--node",
                    "worker-1",
                    "--owner",
                    "pod/web-0",
                    "-n",
                    "shop",
                    "--cpu",
                    "1",
                    "--dry-run",
                    "-o",
                    "json",
                )
            ).stdout
        )
        assert (body["kind"], body["metadata"]) == (
            "Reservation",
            {"name": "a", "namespace": "shop"},
        )
        await world.cluster.client.send("POST", path, body)
        while (await run("get", "shop/a")).exit_code:
            pass
        text = json.dumps(body)
        assert (await run("apply", "-f", "-", text=text)).stdout == "a unchanged\n"
        body["spec"]["slots"] = 2
        assert "configured" in (await run("apply", "-f", "-", text=json.dumps(body))).stdout
        assert (await run("get", "-o", "name")).stdout == "shop/a\n"


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


def editor(tmp_path: Path, *steps: str) -> str:
    """Return an editor that runs a step of a shell script each time, on the file ``$1``."""
    script = tmp_path / "editor"
    cases = "".join(f"{number}) {step} ;;\n" for number, step in enumerate(steps, start=1))
    script.write_text(
        f"#!/bin/bash\nn=$(($(cat {tmp_path}/n 2>/dev/null || echo 0) + 1))\n"
        f"echo $n > {tmp_path}/n\n"
        f'cp "$1" {tmp_path}/seen-$n; echo "$1" > {tmp_path}/file\ncase $n in\n{cases}esac\n'
    )
    script.chmod(0o700)
    return str(script)


def kept(tmp_path: Path) -> Path:
    return Path((tmp_path / "file").read_text().strip())


def left(tmp_path: Path) -> list[Path]:
    return list(tmp_path.glob("reserver-edit-*"))


async def test_what_an_editor_saves_is_written(run: Run, tmp_path: Path) -> None:
    await run("apply", "-f", "-", text=manifest("a"))
    done = await run("edit", "a", EDITOR=editor(tmp_path, "sed -i 's/slots: 1/slots: 3/' $1"))
    assert untimed(done.stdout) == (
        "a edited: 3 slots of 1 CPU on worker-1 held for shop/pod/web-0, until T\n"
    )
    assert (await spec_of(run, "a"))["slots"] == 3
    seen = (tmp_path / "seen-1").read_text()
    assert seen.startswith("# Edit the reservation below.")
    assert list(yaml.safe_load(seen)) == ["name", "spec"]
    assert not kept(tmp_path).exists()
    again = await run("edit", "a", "-o", "json", EDITOR="sed -i 's/slots: 3/slots: 2/'")
    assert json.loads(again.stdout) == json.loads((await run("get", "a", "-o", "json")).stdout)
    assert json.loads(again.stdout)["spec"]["slots"] == 2


@pytest.mark.parametrize(
    ("step", "said"), [("true", "no changes made"), ("> $1", "the saved file is empty")]
)
async def test_what_is_saved_unchanged_or_empty_changes_nothing(
    run: Run, tmp_path: Path, step: str, said: str
) -> None:
    await run("apply", "-f", "-", text=manifest("a"))
    before = (await run("get", "a", "-o", "json")).stdout
    done = await run("edit", "a", EDITOR=editor(tmp_path, step))
    assert (done.exit_code, done.stdout, done.stderr) == (0, "", f"Edit cancelled, {said}\n")
    assert (await run("edit", "a", "-o", "json", EDITOR="true")).stdout == before
    assert (await run("get", "a", "-o", "json")).stdout == before


async def test_what_is_wrong_stands_above_it_when_the_editor_opens_again(
    run: Run, tmp_path: Path
) -> None:
    await run("apply", "-f", "-", text=manifest("a"))
    wrong, right = "sed -i 's/slots: 1/slots: 0/' $1", "sed -i 's/slots: 0/slots: 2/' $1"
    done = await run("edit", "a", EDITOR=editor(tmp_path, wrong, right))
    assert done.exit_code == 0, done.stderr
    assert "# slots: 0 is out of range; write 1 to" in (tmp_path / "seen-2").read_text()
    assert (await spec_of(run, "a"))["slots"] == 2
    (tmp_path / "n").unlink()
    huge = "sed -i \"s/cpu: '1'/cpu: '64'/\" $1"
    given_up = await run("edit", "a", EDITOR=editor(tmp_path, huge, "true"))
    assert given_up.exit_code == 4
    assert "# spec: worker-1 offers too little cpu (4 of " in (tmp_path / "seen-2").read_text()
    assert (
        f"your file is kept; apply it with: reserver apply -f {kept(tmp_path)}" in given_up.stderr
    )
    assert "cpu: '64'" in kept(tmp_path).read_text()
    kept(tmp_path).unlink()


async def test_a_file_is_kept_if_somebody_else_was_faster(
    run: Run, tmp_path: Path, world: World
) -> None:
    await run("apply", "-f", "-", text=manifest("a"))
    address = world.running.grpc_address
    faster = f"{sys.executable} -m reserver update a --slots 2 --address {address} > /dev/null"
    mine = "sed -i 's/slots: 1/slots: 3/' $1"
    done = await run("edit", "a", EDITOR=editor(tmp_path, f"{faster}; {mine}"))
    assert done.exit_code == 1
    assert "was changed meanwhile" in done.stderr
    assert "slots: 3" in kept(tmp_path).read_text()
    kept(tmp_path).unlink()
    assert (await spec_of(run, "a"))["slots"] == 2


async def test_ctrl_c_in_an_editor_is_the_editors(run: Run, tmp_path: Path, world: World) -> None:
    await run("apply", "-f", "-", text=manifest("a"))
    interrupt = "trap : INT; kill -INT 0; sed -i 's/slots: 1/slots: 4/' $1"
    variables = {"EDITOR": editor(tmp_path, interrupt)}
    variables["RESERVER_ADDRESS"] = str(world.running.grpc_address)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "reserver", "edit", "a"),
        env=os.environ | variables,
        stdout=asyncio.subprocess.PIPE,
        start_new_session=True,  # As in a terminal, the signal reaches both.
    )
    told = (await process.communicate())[0].decode()
    assert (process.returncode, told[:9]) == (0, "a edited:")
    assert (await spec_of(run, "a"))["slots"] == 4


async def test_an_editor_that_cannot_be_run_is_named_and_no_file_is_left(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await run("apply", "-f", "-", text=manifest("a"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    done = await run("edit", "a", EDITOR="/no/such/editor")
    assert left(tmp_path) == []
    assert done.exit_code == 2
    assert "EDITOR: '/no/such/editor' cannot be run" in done.stderr


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


async def test_labels_of_files_are_applied_created_and_edited(tmp_path: Path) -> None:
    async with contextlib.AsyncExitStack() as stack:
        stack.enter_context(capture_logs())  # They would stand among what a command prints.
        world = await stack.enter_async_context(
            serving(tmp_path, "worker-1", store=StoreKind.OBJECT)
        )
        run = runs_beside(world)
        spec = yaml.safe_load(manifest("a"))["spec"]

        def text(name: str, **labels: str) -> str:
            kind = {"apiVersion": "reserver.io/v1alpha1", "kind": "Reservation"}
            return yaml.safe_dump(
                kind | {"metadata": {"name": name, "labels": labels}, "spec": spec}
            )

        async def labels(name: str) -> dict[str, str]:
            told: dict[str, str] = json.loads((await run("get", name, "-o", "json")).stdout)[
                "labels"
            ]
            return told

        first = await run("apply", "-f", "-", text=text("a", team="shop"))
        assert first.stdout.startswith("a created: ")
        assert (
            await run("apply", "-f", "-", text=text("a", team="shop"))
        ).stdout == "a unchanged\n"
        await run("update", "a", "--slots", "2")
        more = await run("apply", "-f", "-", text=text("a", tier="gold"))
        assert more.stdout.startswith("a configured: ")
        assert await labels("a") == {"team": "shop", "tier": "gold"}
        assert (await run("create", "-f", "-", text=text("b", team="shop"))).exit_code == 0
        pair = f"{text('c', team='shop')}---\n{text('d', team='bank')}"
        assert (await run("create", "-f", "-", "--set", text=pair)).exit_code == 0
        assert (await run("get", "-l", "team=shop", "-o", "name")).stdout.split() == [
            f"shop/{name}" for name in "abc"
        ]
        printed = (await run("get", "d", "-o", "yaml")).stdout
        assert "reserver.io/set" in printed  # It is the server's own: what is printed can be read.
        again = printed.replace("name: d", "name: e")
        assert (await run("create", "-f", "-", text=again)).exit_code == 5  # No room yet.
        assert await labels("e") == {"team": "bank"}
        shown = await run(
            "create", "-f", "-", "--dry-run", "-o", "json", text=text("f", team="shop")
        )
        assert json.loads(shown.stdout)["metadata"]["labels"] == {"team": "shop"}
        edited = await run("edit", "a", EDITOR="sed -i s/^..tier:.gold/\\ \\ level:\\ high/")
        assert edited.stdout.startswith("a edited"), edited
        assert await labels("a") == {"team": "shop", "level": "high"}
        wrong = await run("apply", "-f", "-", text=text("a", team="a b"))
        assert wrong.exit_code == 1
        assert "metadata.labels: 'a b' is not a label's value; use letters" in wrong.stderr


async def test_annotations_that_would_be_lost_are_refused(run: Run) -> None:
    def text(**annotations: str) -> str:
        kind = {"apiVersion": "reserver.io/v1alpha1", "kind": "Reservation"}
        metadata = {"name": "a", "annotations": annotations}
        spec = yaml.safe_load(manifest("a"))["spec"]
        return yaml.safe_dump(kind | {"metadata": metadata, "spec": spec})

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
