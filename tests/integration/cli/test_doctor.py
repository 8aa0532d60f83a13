"""`doctor` with and without a Reserver."""

from __future__ import annotations

import json
from pathlib import Path

from tests.integration.cli.runs import Run


async def test_each_check_is_a_line(run: Run, tmp_path: Path) -> None:
    kubeconfig = ("--kubeconfig", str(tmp_path / "kubeconfig"))
    told = await run("doctor", *kubeconfig, "-o", "json")
    checks = {each["check"]: each for each in json.loads(told.stdout)["checks"]}
    assert told.exit_code == (0 if all(each["is_ok"] for each in checks.values()) else 1)
    for name in ("kubernetes", "reserver", "version", "ready", "clock"):
        assert checks[name]["is_ok"], checks[name]
    assert "reservations.reserver.io" in checks
    lines = (await run("doctor", *kubeconfig)).stdout.splitlines()
    assert len(lines) == 1 + len(checks)


async def test_where_nobody_answers_it_says_so_and_goes_on(run: Run, tmp_path: Path) -> None:
    kubeconfig = ("--kubeconfig", str(tmp_path / "kubeconfig"))
    told = await run("doctor", *kubeconfig, "--address", "127.0.0.1:1")
    assert told.exit_code == 1
    assert "cannot reach reserver at 127.0.0.1:1" in " ".join(told.stdout.split())
    assert "reservations.reserver.io" in told.stdout
    alone = await run("doctor", "--kubeconfig", "/no/such/file", "--address", "")
    assert (alone.exit_code, "kubernetes" in alone.stdout) == (1, True)
