"""The reservations that options select, and the order of the output."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.integration.cli.runs import Run


async def _make(run: Run) -> None:
    for name, cpu, owner in (("a", "2", "pod/x"), ("b", "500m", "app=web"), ("c", "1", "pod/y")):
        namespace = "shop" if name != "c" else "other"
        await run(
            *("create", name, "--node", "worker-1", "--owner", owner, "-n", namespace),
            *("--cpu", cpu, "--policy", "Require" if name == "b" else "Prefer"),
        )


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ("-A", "a b c"),
        ("-n shop", "a b"),
        ("a -n shop", "a"),
        ("--sort-by spec.resources.cpu", "b c a"),
        ("--sort-by {.spec.resources.cpu}", "b c a"),
        ("--sort-by .metadata.name", "a b c"),
        ("--sort-by status.message", "a b c"),
        ("--field-selector spec.policy=Require", "b"),
        ("--field-selector spec.policy!=Require,metadata.name!=c", "a"),
        ("--field-selector status.placements[0].node==worker-1 --sort-by spec.policy", "a c b"),
        ("--field-selector status.backed=true", "a b c"),
        ("-l !team", "a b c"),
    ],
)
async def test_options_of_kubectl_mean_what_they_mean_there(
    run: Run, options: str, names: str
) -> None:
    await _make(run)
    told = json.loads((await run("get", *options.split(), "-o", "json")).stdout)
    found = told.get("reservations", [told])
    assert " ".join(each["name"] for each in found) == names


async def test_a_name_is_looked_for_among_those_of_a_namespace(run: Run) -> None:
    await _make(run)
    for command in (("get",), ("describe",), ("extend", "--ttl", "1h"), ("release",)):
        elsewhere = await run(*command, "c", "-n", "shop")
        assert elsewhere.exit_code == 1, command
        assert "there is no reservation 'c'" in elsewhere.stderr
        assert (await run(*command, "c", "-n", "other")).exit_code == 0


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ("-A -n shop", "--all-namespaces: excludes --namespace; give one of them"),
        ("a --node worker-1", "NAME: give names (and -n), or filters, not both"),
        ("--sort-by nodes", "--sort-by: 'nodes' is not a field; write one that `-o json` prints"),
        ("--field-selector spec.node", "--field-selector: 'spec.node' is not FIELD=VALUE"),
        ("a -l team", "NAME: give names (and -n), or filters, not both"),
        ("-l team=(", "--selector: 'team=(' has no comma before '('"),
        ("-w --sort-by name", "--field-selector, --sort-by: are not for --watch"),
    ],
)
async def test_options_that_do_not_go_together_are_named(run: Run, options: str, line: str) -> None:
    result = await run("get", *options.split())
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"reserver: {line}")


async def test_several_are_extended_by_name_or_by_filter(run: Run) -> None:
    await _make(run)
    named = await run("extend", "a", "b", "ghost", "--ttl", "2d", "-o", "json")
    assert named.exit_code == 1
    assert [each["name"] for each in json.loads(named.stdout)["reservations"]] == ["a", "b"]
    assert "ghost" in named.stderr
    every = await run("extend", "--all", "-n", "other", "--expires-at", "+3d")
    assert (every.exit_code, every.stdout.split()[1]) == (0, "extended:")
    assert "/c extended: 1 CPU on worker-1 held for other/pod/y, until 20" in every.stdout
    nothing = await run("extend", "--all", "-n", "nobody", "--ttl", "1h")
    assert (nothing.exit_code, nothing.stdout) == (0, "")
    for words in (("--ttl", "1h"), ("a", "--all", "--ttl", "1h"), ("a", "--node=x", "--ttl=1h")):
        refused = await run("extend", *words)
        assert (refused.exit_code, refused.stderr[:14]) == (2, "reserver: NAME")


async def test_rows_are_printed_without_titles(run: Run) -> None:
    await _make(run)
    every = (await run("get", "--no-headers")).stdout.splitlines()
    assert [each.split()[0] for each in every] == ["a", "b", "c"]
    assert (await run("get", "a", "--no-headers")).stdout.startswith("a ")
    refused = await run("get", "--no-headers", "-w")
    assert (refused.exit_code, refused.stderr[:24]) == (2, "reserver: --no-headers: ")


async def test_lists_are_printed_for_spreadsheets_and_by_template(run: Run) -> None:
    await _make(run)
    lines = (await run("get", "-o", "csv")).stdout.splitlines()
    assert lines[0].startswith("NAME,PHASE,NODE,SLOTS,CLAIMED,ENDS IN,ONE SLOT HOLDS,OWNERS,ID")
    assert [line.split(",")[0] for line in lines[1:]] == ["a", "b", "c"]
    path = "jsonpath={range .reservations[*]}{.name}={.spec.slots};{end}"
    assert (await run("get", "-o", path)).stdout == "a=1;b=1;c=1;\n"
    assert (await run("get", "a", "--output=jsonpath={.status.phase}")).stdout == "Active\n"
    rows = (await run("get", "-o", "csv", "--no-headers")).stdout.splitlines()
    assert rows == lines[1:]
    kubectls = await run("get", "-o", "jsonpath={.items[*].name}")
    assert (kubectls.exit_code, kubectls.stdout) == (2, "")
    assert "there is no {.items}; write {.reservations[*]}" in kubectls.stderr
    assert (await run("top", "nodes", "-o", "csv")).stdout.startswith("NODE,RESOURCE,ALLOCATABLE,")
    broken = await run("get", "-o", "jsonpath={.a")
    assert (broken.exit_code, broken.stdout) == (2, "")
    assert "--output: jsonpath: '{.a' is not a path; write e.g." in broken.stderr
    refused = await run("release", "a", "-o", "csv")
    assert (refused.exit_code, "csv is for get, history, report" in refused.stderr) == (2, True)
    assert (await run("release", "-l", "x=y", "--yes")).stderr == "reserver: no reservations\n"
    unasked = await run("release", "-l", "x=y")
    assert unasked.stderr == "reserver: --selector: input or output is not a terminal; pass --yes\n"


async def test_a_folder_is_applied_without_what_is_of_other_kinds(run: Run) -> None:
    examples = str(Path(__file__).parents[3] / "examples")
    applied = await run("apply", "-f", examples, "--dry-run", "--force")
    assert (applied.exit_code, applied.stdout) == (
        0,
        "web-seats created (dry run)\nnightly created (dry run)\nweb-0-seat created (dry run)\n",
    )
    assert "examples: skips 13 documents of other kinds" in applied.stderr
    refused = await run("apply", "-f", f"{examples}/quota.yaml", "--dry-run")
    assert (refused.exit_code, "is not a reservation" in refused.stderr) == (1, True)
