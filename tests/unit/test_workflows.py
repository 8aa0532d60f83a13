"""The workflows of the forge run our own commands, trust no tag, and may no more than they need."""

import json
import re
from typing import Any

import pytest
import yaml

from hack import dist

FOLDER = dist.ROOT / ".github/workflows"
FILES = sorted(FOLDER.iterdir())
MAKEFILE = (dist.ROOT / "Makefile").read_text()


def read(name: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.load(
        (FOLDER / name).read_text(), yaml.BaseLoader
    )  # `on` is a word
    return found


def steps(workflow: dict[str, Any]) -> list[dict[str, Any]]:
    return [step for job in workflow["jobs"].values() for step in job.get("steps", ())]


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.name))
def test_every_action_is_pinned_by_commit(file: Any) -> None:
    used = re.findall(r"uses: (.*)", file.read_text())
    assert used
    for each in used:
        ours = re.fullmatch(r"\./\.github/workflows/(\S+)", each)
        pinned = re.fullmatch(r"[\w.-]+/[\w.-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", each)
        assert (FOLDER / ours[1]).is_file() if ours else pinned, each


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.name))
def test_nothing_of_an_event_becomes_part_of_a_script(file: Any) -> None:
    workflow = read(file.name)
    assert "permissions" in workflow
    assert "pull_request_target" not in workflow["on"]
    for step in steps(workflow):
        assert "${{" not in step.get("run", "")
        if step.get("uses", "").startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] == "false"


def test_what_is_pushed_or_proposed_passes_what_has_to_pass_here() -> None:
    workflow = read("ci.yaml")
    assert workflow["permissions"] == {"contents": "read"}
    assert workflow["on"]["push"] == {"branches": ["main"]}
    assert {"pull_request", "workflow_call"} < workflow["on"].keys()
    assert workflow["jobs"]["check"]["steps"][-1] == {"run": ".ci/run"}
    assert steps(workflow)[0]["with"]["fetch-depth"] == "0"  # tests/e2e/apart/test_kept.py


def test_changes_pass_on_the_python_of_the_image_and_releases_on_all() -> None:
    (image,) = set(re.findall(r"python:([\d.]+)-slim", (dist.ROOT / "Dockerfile").read_text()))
    job = read("ci.yaml")["jobs"]["check"]
    (default,) = re.findall(r"'(\[.*\])'", job["strategy"]["matrix"]["python"])
    assert json.loads(default) == [image]
    (version,) = [step["with"].get("python-version") for step in job["steps"][1:2]]
    assert version == "${{ matrix.python }}"
    pythons = json.loads(read("release.yaml")["jobs"]["check"]["with"]["pythons"])
    assert image in pythons
    listed = re.findall(r"Python :: (3\.\d+)", (dist.ROOT / "pyproject.toml").read_text())
    assert [".".join(python.split(".")[:2]) for python in pythons] == listed


def test_only_the_job_that_runs_nothing_of_ours_may_write() -> None:
    workflow = read("release.yaml")
    assert (workflow["on"], workflow["permissions"]) == ({"push": {"tags": ["v*"]}}, {})
    jobs = workflow["jobs"]
    assert [jobs[name].get("needs") for name in ("check", "build", "publish")] == [
        None,
        "check",
        "build",
    ]
    writers = {name for name, job in jobs.items() if "write" in job["permissions"].values()}
    assert writers == {"publish"}
    assert jobs["publish"]["permissions"].keys() == {
        "attestations",
        "contents",
        "id-token",
        "packages",
    }
    for step in jobs["publish"]["steps"]:
        assert "make " not in step.get("run", "")


def test_what_is_published_is_what_is_built() -> None:
    jobs = read("release.yaml")["jobs"]
    (build,) = [step["run"] for step in jobs["build"]["steps"] if "make" in step.get("run", "")]
    assert 'make release TAG="$GITHUB_REF_NAME"' in build
    script = "\n".join(step.get("run", "") for step in jobs["publish"]["steps"])
    assert "dist/reserver-$version-image.tar:" in script
    assert "IMAGE_ARCHIVE = dist/reserver-$(VERSION)-image.tar" in MAKEFILE
    assert '"dist/reserver-$version.tgz"' in script
    assert "sha256sum --check --strict SHA256SUMS" in script
