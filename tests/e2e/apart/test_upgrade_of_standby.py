"""By the changelog's command, the new Service leads to the pods of an older standby."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from hack.controlplane.kubeconfig import kubectl
from hack.reserver_process import wait_for
from tests.e2e.apart.test_kept import OLD
from tests.installing import ROOT, Reader, empty_cluster, give_addresses, reached, running

pytestmark = [pytest.mark.controlplane, pytest.mark.timeout(300)]

STANDBY = ROOT / "scheduler-config/standby"


def test_a_standby_that_was_labelled_is_called_by_the_new_service(tmp_path: Path) -> None:
    (line,) = re.findall(
        r"^ *(kubectl .* label pods .*)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE
    )
    packed = subprocess.run(
        ("git", "archive", OLD, "scheduler-config"), cwd=ROOT, capture_output=True, check=True
    )
    subprocess.run(["tar", "x"], cwd=tmp_path, input=packed.stdout, check=True)
    with empty_cluster() as plane:
        kubectl(plane.kubeconfig, "apply", "-k", str(tmp_path / "scheduler-config/standby"))
        wait_for(lambda: len(running(plane)) == 2, "both run")
        give_addresses(plane)
        wait_for(lambda: reached(plane) == 2, "the older version's Service has its pods")
        kubectl(plane.kubeconfig, "apply", "-f", str(STANDBY / "service.yaml"))
        wait_for(lambda: reached(plane) == 0, "without the label nobody is called")
        Reader(plane, tmp_path).run(line)
        wait_for(lambda: reached(plane) == 2, "the pods of the older version are called again")
