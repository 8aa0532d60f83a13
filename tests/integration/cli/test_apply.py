"""`apply` creates or changes reservations, and leaves equal ones as they are."""

from __future__ import annotations

import json
from pathlib import Path

from reserver.reservations.enums import StoreKind
from tests.integration.cli.manifests import manifest, spec_of
from tests.integration.cli.runs import Run, runs_beside, untimed
from tests.integration.world import OBJECTS, serving


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
