"""The content of the image, and the manifests that run it."""

import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from hack.image import build

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "Dockerfile").read_text().replace("\\\n", "")
IGNORED = (ROOT / ".dockerignore").read_text().splitlines()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
POD_KINDS = {"Deployment", "CronJob", "Job"}


def pod_specs(value: Any) -> Iterator[dict[str, Any]]:
    """Yield each part of a manifest that has containers."""
    if isinstance(value, dict):
        if "containers" in value:
            yield value
        for each in value.values():
            yield from pod_specs(each)


def shipped() -> list[dict[str, Any]]:
    files = [
        file for file in (ROOT / "scheduler-config").rglob("*.yaml") if file.name != "patch.yaml"
    ]
    found = [each for file in files for each in yaml.safe_load_all(file.read_text())]
    return [each for each in found if isinstance(each, dict) and each.get("kind") in POD_KINDS]


def test_all_that_the_wheel_is_made_of_is_copied() -> None:
    wheel = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]
    needed = {*wheel["packages"], *wheel["force-include"], PROJECT["project"]["readme"]}
    for each in needed:
        assert re.search(rf"^COPY (.* )?{re.escape(each)} ", DOCKERFILE, re.MULTILINE), each
    sent = {line[1:] for line in IGNORED if line.startswith("!")}
    copied = re.findall(r"^COPY (?!--from)(.*) \S+$", DOCKERFILE, re.MULTILINE)
    assert sent == {name for line in copied for name in line.split()}


@pytest.mark.parametrize("architecture", build.ARCHITECTURES)
def test_an_image_for_another_architecture_runs_nothing_of_it(
    tmp_path: Path, architecture: str
) -> None:
    text = build.with_its_base(tmp_path, architecture).read_text()
    first, last = re.findall(r"^FROM .*$", text, re.MULTILINE)
    base = f"docker.io/library/python@{build.base_image().partition('@')[2]}"
    assert first == f"FROM --platform=linux/{build.HERE} {base} AS build"
    assert last == f"FROM --platform=linux/{architecture} {base}"
    assert not re.search(r"^RUN ", text.rpartition(last)[2], re.MULTILINE)
    assert f"{architecture} | " in text
    assert "\nARG TARGETARCH\n" in text  # A default would count for more than the builder's.


def test_it_runs_as_the_user_of_the_manifests_and_needs_no_shell() -> None:
    (user,) = re.findall(r"^USER (\d+):(\d+)$", DOCKERFILE, re.MULTILINE)
    (entry,) = re.findall(r"^ENTRYPOINT (.*)$", DOCKERFILE, re.MULTILINE)
    assert json.loads(entry) == ["reserver"]
    specs = [spec for each in shipped() for spec in pod_specs(each)]
    assert len(specs) == 6
    for spec in specs:
        security = spec["securityContext"]
        assert (str(security["runAsUser"]), str(security["runAsGroup"])) == user
        for container in [*spec["containers"], *spec.get("initContainers", ())]:
            assert container["securityContext"]["readOnlyRootFilesystem"]
            for command in commands(container):
                assert command[0] in {"reserver", "kube-scheduler", "python"}, command


def commands(value: Any) -> Iterator[list[str]]:
    """Yield the commands of a container, of its probes and of its preStop hook."""
    if isinstance(value, dict):
        for key, each in value.items():
            if key == "command":
                yield each
            else:
                yield from commands(each)
