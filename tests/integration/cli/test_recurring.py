"""A reservation that recurs, from the command line: create, look, skip, update, restore."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from structlog.testing import capture_logs

from reserver.reservations.enums import StoreKind
from tests.integration.cli.runs import Run, runs_beside
from tests.integration.world import serving


async def told(run: Run, name: str) -> Any:
    return json.loads((await run("get", name, "-o", "json")).stdout)


async def is_restored_with(run: Run, lead: str) -> None:
    """Check that `daily` is not extended, and has its schedule after a release and `restore`."""
    refused = await run("extend", "daily", "--ttl", "1h")
    assert "recurring" in refused.stderr
    assert (await run("release", "daily")).exit_code == 0
    restored = await run("restore", "daily")
    assert restored.exit_code == 0, restored.stderr
    assert (await told(run, "daily"))["spec"]["schedule"]["lead"] == lead


async def test_what_recurs_is_created_shown_skipped_and_changed(run: Run) -> None:
    flags = ("--owner", "pod/web-0", "-n", "shop", "--cpu", "1", "--node", "worker-1")
    every = ("--every", "0:00 daily", "--for", "24h", "--time-zone", "UTC")
    created = await run("create", "daily", *flags, *every)
    assert created.exit_code == 0, created.stderr
    assert "held for shop/pod/web-0, until " in created.stdout
    assert created.stdout.endswith(", and again\n")
    later = f"{(datetime.now(UTC) + timedelta(hours=3)):%H}:00"
    flags = ("--owner", "pod/web-1", "-n", "shop", "--cpu", "1", "--node", "worker-1")
    waiting = await run("create", "later", *flags, "--every", later, "--for", "1h")
    assert waiting.exit_code == 0, waiting.stderr
    assert "Pending" in waiting.stdout
    assert "the next occurrence lies in the future" in waiting.stderr
    at_once = await run("create", "now", *flags, "--every", later, "--for", "1h", "--no-wait")
    assert "spec.schedule: lies in the future; leave it out" in at_once.stderr
    shown = (await run("describe", "daily")).stdout
    assert "0 0 * * * (UTC) for 24h" in shown
    assert shown.count("T00:00:00Z to ") == 3
    spec = (await told(run, "daily"))["spec"]
    assert spec["schedule"] == {"cron": "0 0 * * *", "duration": "24h", "timeZone": "UTC"}
    skipped = await run("skip", "daily")
    assert skipped.stdout.startswith("daily: skips "), skipped.stderr
    again = await run("skip", "daily")
    assert again.stdout != skipped.stdout
    after = (await told(run, "daily"))["spec"]["schedule"]
    assert len(after["skip"]) == 2
    longer = await run("update", "daily", "--lead", "30m")
    assert longer.exit_code == 0, longer.stderr
    assert (await told(run, "daily"))["spec"]["schedule"] == after | {"lead": "30m"}
    assert (await run("update", "daily", "--suspend")).exit_code == 0
    paused = await told(run, "daily")
    assert (paused["spec"]["schedule"]["suspend"], paused["status"]["phase"]) == (True, "Pending")
    assert paused["status"]["message"] == "schedule.suspend is true; nothing is held while it is"
    assert (await run("update", "daily", "--no-suspend")).exit_code == 0
    assert "suspend" not in (await told(run, "daily"))["spec"]["schedule"]
    await is_restored_with(run, lead="30m")


async def test_one_that_does_not_recur_has_no_occurrence_to_skip(run: Run) -> None:
    await run("create", "once", "--node", "worker-1", "--cpu", "1", "--owner", "pod/x")
    refused = await run("skip", "once")
    said = "reserver: once: does not recur; `reserver release` ends it\n"
    assert (refused.exit_code, refused.stderr) == (1, said)


async def test_a_skip_does_not_bring_back_an_occurrence_that_was_left_out(run: Run) -> None:
    flags = ("--owner", "pod/web-0", "-n", "shop", "--cpu", "1", "--node", "worker-1")
    every = ("--every", "0:00 daily", "--for", "24h", "--time-zone", "UTC")
    assert (await run("create", "daily", *flags, *every)).exit_code == 0
    midnight = f"{datetime.now(UTC):%Y-%m-%d}T00:00:00+00:00"
    document = await told(run, "daily")
    document["spec"]["schedule"]["skip"] = [midnight, "2020-01-01T00:00:00+00:00"]
    applied = await run("apply", "-f", "-", text=json.dumps(document))
    assert applied.exit_code == 0, applied.stderr
    assert (await run("skip", "daily")).exit_code == 0
    kept = (await told(run, "daily"))["spec"]["schedule"]["skip"]
    assert datetime.fromisoformat(kept[0]) == datetime.fromisoformat(midnight)
    assert len(kept) == 2


async def test_a_wrong_schedule_is_told_by_its_flag(run: Run) -> None:
    flags = ("--owner", "pod/web-0", "-n", "shop", "--cpu", "1", "--node", "worker-1")
    for wrong, said in (
        (("--every", "often"), "--every: 'often' is not a schedule"),
        (("--every", "22:00", "--for", "30h"), "--for:"),
        (("--every", "22:00", "--for", "1h", "--time-zone", "Mars"), "--time-zone:"),
        (("--every", "22:00"), "--for: is missing"),
        (("--suspend",), "--suspend: goes with --every only"),
    ):
        refused = await run("create", "r", *flags, *wrong)
        assert refused.exit_code == 2, (wrong, refused.stderr)
        assert said in refused.stderr


async def test_an_occurrence_that_had_begun_before_is_held_from_its_creation_on(
    tmp_path: Path,
) -> None:
    daily = ("--every", "0 0 * * *", "--for", "24h")
    owner = ("--owner", "app=web", "-n", "shop", "--cpu", "1", "--node", "worker-1")
    with capture_logs():
        async with serving(tmp_path, "worker-1", store=StoreKind.OBJECT) as world:
            run = runs_beside(world)
            assert (await run("create", "daily", *owner, *daily)).exit_code == 0
            assert (await run("release", "daily", "-n", "shop")).exit_code == 0
            (past,) = json.loads((await run("history", "-o", "json")).stdout)["reservations"]
    begin, end = (datetime.fromisoformat(past[each]) for each in ("since", "ended"))
    assert end - begin < timedelta(minutes=1)
