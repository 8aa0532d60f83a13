"""`reserver history` and `get --all`: what became of reservations that are over."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from reserver.reservations.accounts import AccountKey, HoldUse, week_of
from reserver.stores.codec import prices
from tests.integration.cli.runs import Run, untimed
from tests.integration.test_endings import bind
from tests.integration.world import World
from tests.waiting import until_answered

NODE = ("--node", "worker-1", "--cpu", "1", "-n", "shop")


@pytest.fixture
async def over(run: Run, world: World) -> None:
    """Two reservations are over: one was claimed, one released."""
    said = ("--description", "for the move\nof all")
    assert (await run("create", "a", "--owner", "pod/web-0", *NODE, *said)).exit_code == 0
    assert (await run("create", "b", "--owner", "app=db", *NODE, "--slots", "2")).exit_code == 0
    await run("create", "c", "--owner", "app=db", *NODE)
    await bind(world, "web-0")

    async def is_over() -> bool:
        return (await run("get", "a")).exit_code != 0

    await until_answered(is_over)
    await run("release", "b")


async def reaches(run: Run, name: str, phase: str) -> None:
    async def is_so() -> bool:
        return phase in (await run("get", name)).stdout

    await until_answered(is_so)


@pytest.mark.usefixtures("over")
async def test_history_says_who_claimed_what(run: Run) -> None:
    header, *rows = untimed((await run("history")).stdout).splitlines()
    columns = ["NAME", "OUTCOME", "ENDED", "HELD", "FOR", "CLAIMED", "BY", "NODE"]
    assert header.split() == columns
    assert [row.split() for row in rows] == [
        ["a", "Claimed", "SPAN", "ago", "SPAN", "1/1", "shop/web-0", "worker-1"],
        ["b", "Removed", "SPAN", "ago", "SPAN", "0/2", "-", "worker-1"],
    ]
    (wide,) = (await run("history", "a", "-o", "wide")).stdout.splitlines()[1:]
    assert re.split("   +", wide)[7:] == [
        "cpu 1, pods 1",
        "shop/pod/web-0",
        "reserver-system/reservations/a",
        "-",
        "for the move",
    ]
    assert (await run("history", "a", "-o", "name")).stdout == "reserver-system/reservations/a\n"
    assert (
        await run("history", "-n", "elsewhere")
    ).output == "reserver: no reservation has ended\n"
    assert (await run("history", "--since", "1h", "b")).stdout.splitlines()[1:]


@pytest.mark.usefixtures("over")
async def test_history_is_told_to_programs(run: Run) -> None:
    first, _ = json.loads((await run("history", "-o", "json")).stdout)["reservations"]
    assert datetime.fromisoformat(first["ended"]) <= datetime.now(UTC)
    assert (first["outcome"], first["claimed"], first["slots"]) == ("Claimed", 1, 1)
    assert first["description"] == "for the move\nof all"
    assert [claim["pod"] for claim in first["claims"]] == ["shop/web-0"]


async def test_what_is_reusable_was_used_by_pods_that_have_ended(run: Run, world: World) -> None:
    reusable = ("--owner", "pod/web-0", *NODE, "--reusable")
    assert (await run("create", "job", *reusable)).exit_code == 0
    await bind(world, "web-0")
    await reaches(run, "job", "Claimed")
    await world.cluster.client.send("DELETE", "/api/v1/namespaces/shop/pods/web-0")
    await reaches(run, "job", "Active")
    assert (await run("release", "job")).exit_code == 0
    _, row = untimed((await run("history")).stdout).splitlines()
    assert row.split() == ["job", "Removed", "SPAN", "ago", "SPAN", "1/1", "shop/web-0", "worker-1"]
    (sums,) = json.loads((await run("report", "--owners", "-o", "json")).stdout)["owners"]
    assert sums["hours"]["unused"] == 0
    assert "not restored" not in (await run("restore", "job", "-n", "shop")).output


@pytest.mark.usefixtures("over")
async def test_all_are_those_that_there_are_and_those_that_were(run: Run) -> None:
    told = json.loads((await run("get", "--all", "-o", "json")).stdout)
    assert [each["name"] for each in told["reservations"]] == ["c"]
    assert [each["name"] for each in told["past"]] == ["a", "b"]
    words = (await run("get", "--all")).stdout.split()
    assert [each for each in words if each in {"a", "b", "c", "Active", "Claimed", "Removed"}] == [
        *("c", "Active"),
        *("a", "Claimed"),
        *("b", "Removed"),
    ]
    assert len((await run("get", "--all", "-o", "name")).stdout.splitlines()) == 3


@pytest.mark.usefixtures("over")
async def test_who_asks_for_what_is_over_is_told_what_became_of_it(run: Run) -> None:
    for command in ("get", "describe", "release"):
        told = await run(command, "a")
        assert told.exit_code == 1
        assert told.output.startswith(
            "reserver: there is no reservation 'a' any more: it was claimed by shop/web-0 at 20"
        )


@pytest.mark.parametrize(
    ("line", "code", "words"),
    [
        ("history nobody", 1, "there is no reservation 'nobody' in the history"),
        ("history --since yesterday", 2, "--since: "),
        ("get a --all", 2, "--all: goes with --namespace and --output only"),
        ("get --all --node worker-1", 2, "--all: goes with --namespace and --output only"),
    ],
)
async def test_what_cannot_be_shown_is_told(run: Run, line: str, code: int, words: str) -> None:
    told = await run(*line.split())
    assert told.exit_code == code
    assert words in told.output


@pytest.mark.usefixtures("over")
async def test_a_report_says_how_much_was_held_and_what_nobody_used(
    run: Run, tmp_path: Path
) -> None:
    title, header, row, *_ = (await run("report", "--since", "2h")).stdout.splitlines()
    assert re.fullmatch(r"cpu held from 20[-0-9]+ [:0-9]+ to 20[-0-9]+ [:0-9]+ UTC, .*", title)
    assert header.split() == ["NAMESPACE", "RESERVATIONS", "HELD", "USED", "UNUSED", "OPEN"]
    assert row.split()[:2] == ["shop", "3"]
    told = json.loads((await run("report", "--owners", "-n", "shop", "-o", "json")).stdout)
    assert (told["resource"], told["unit"], len(told["overTime"])) == ("cpu", "cores", 24)
    fates = {each["owner"]: sorted(each["hours"]) for each in told["owners"]}
    assert fates.keys() == {"pod/web-0", "app=db"}
    assert list(fates.values()) == [["open", "unused", "used"]] * 2
    drawn = tmp_path / "report.svg"
    assert (await run("report", "--picture", str(drawn))).exit_code == 0
    assert "<svg" in drawn.read_text()
    assert "@font-face" not in drawn.read_text()  # It names no other host.


async def test_a_report_counts_what_whole_nodes_offer(run: Run) -> None:
    made = await run("create", "all", "--nodes", "1", "--owner", "app=web", "-n", "shop")
    assert made.exit_code == 0, made.stderr
    for resource in ("memory", "nodes"):
        told = await run("report", "--resource", resource, "-n", "shop", "-o", "json")
        assert [each["owner"] for each in json.loads(told.stdout)["owners"]] == ["app=web"]


async def test_accounts_sum_up_weeks_for_whom_and_what_they_cost(run: Run, world: World) -> None:
    accountant = world.running.assembly.accountant
    week, gib = week_of(datetime.now(UTC).timestamp()), 2**30
    for owner, cores in (("pod/web-0", 1000), ("app=db", 3000)):
        uses = {"cpu": HoldUse(cores, 500, 500), "memory": HoldUse(4 * gib)}
        accountant.held.accounts.put(AccountKey(week, "team", owner), uses)
    day = datetime.fromtimestamp(week, UTC)
    header, *rows = (await run("report", "--weekly", "-n", "team")).stdout.splitlines()[1:]
    assert header.split() == ["WEEK", "NAMESPACE", "HELD", "CLAIMED", "USED", "UNUSED", "USE"]
    row = f"{day:%Y-%m-%d} team 6.0 2.0 1.0 5.0 17%"
    assert [each.split() for each in rows] == [row.split()]
    accountant.prices = prices.parse("cpu=0.5,memory=0.25,currency=EUR")
    weekly = ("report", "--weekly", "-n", "team", "--owners")
    printed = (await run(*weekly, "--resource", "memory")).stdout.splitlines()
    assert (
        printed[0] == "memory by week (from Monday, UTC), in GiB × hours; COST is of all resources:"
    )
    assert "COST EUR   UNUSED COST EUR" in printed[1]
    assert [each.split()[2:] for each in printed[2:]] == [
        ["app=db", "4.0", "0.0", "0.0", "4.0", "0%", "3.00", "2.75"],
        ["pod/web-0", "4.0", "0.0", "0.0", "4.0", "0%", "2.00", "1.75"],
    ]
    said = json.loads((await run(*weekly, "-o", "json")).stdout)
    assert said["currency"] == "EUR"
    assert said["accounts"][0] == {
        "week": f"{day:%Y-%m-%dT%H:%M:%SZ}",
        "namespace": "team",
        "owner": "app=db",
        "resource": "cpu",
        "unit": "cores",
        "held": 4.0,
        "claimed": 1.0,
        "used": 0.5,
        "unused": 3.5,
        "cost": 2.0,
        "unusedCost": 1.75,
    }
    lines = (await run("report", "--weekly", "-n", "team", "-o", "csv")).stdout.splitlines()
    assert len(lines) == 2


@pytest.mark.parametrize(
    ("line", "code", "words"),
    [
        ("report --weekly --resource fpga.example/x", 0, "no fpga.example/x was held in these"),
        ("report --weekly --picture x.svg", 2, "--picture: draws no accounts"),
        ("report --since never", 2, "--since: "),
        ("report --since 0", 2, "--since: is zero"),
        ("report --picture x.png", 2, "--picture: x.png is neither .svg nor .html"),
        ("report --resource nvidia.com/gpu", 0, "no nvidia.com/gpu was held in that time"),
    ],
)
async def test_what_cannot_be_reported_is_told(run: Run, line: str, code: int, words: str) -> None:
    told = await run(*line.split())
    assert told.exit_code == code
    assert words in told.output
