"""The memory limit of a container, in both versions of cgroups."""

from pathlib import Path

import pytest

from reserver.process.metrics import memory_limit, memory_measured

TWO, ONE = "memory.max", "memory.limit_in_bytes"


@pytest.mark.parametrize(
    ("own", "files", "limit"),
    [
        pytest.param("0::/", {TWO: "1048576"}, 1048576, id="a container"),
        pytest.param("0::/", {TWO: "max"}, 0, id="without a limit"),
        pytest.param("0::/", {}, 0, id="the root has no file"),
        pytest.param("0::/a/b", {f"a/b/{TWO}": "20", f"a/{TWO}": "10"}, 10, id="of a parent"),
        pytest.param("0::/a/b", {f"a/b/{TWO}": "max", f"a/{TWO}": "10"}, 10, id="of it alone"),
        pytest.param("0::/../../not-here", {TWO: "10"}, 10, id="beyond what is seen"),
        pytest.param("5:cpu:/x\n4:memory:/pod", {f"memory/pod/{ONE}": "10"}, 10, id="version 1"),
        pytest.param("4:memory:/pod", {f"memory/{ONE}": "10"}, 10, id="version 1, in a container"),
        pytest.param(
            "4:memory:/", {f"memory/{ONE}": "9223372036854771712"}, 0, id="version 1, no limit"
        ),
        pytest.param("0::/", {TWO: ""}, 0, id="an empty file"),
        pytest.param("", {}, 0, id="no cgroups"),
    ],
)
def test_it_is_that_of_the_cgroup(
    tmp_path: Path, own: str, files: dict[str, str], limit: int
) -> None:
    (tmp_path / "own").write_text(own)
    for name, text in files.items():
        file = tmp_path / "cgroup" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{text}\n")
    assert memory_limit(tmp_path / "own", tmp_path / "cgroup") == limit


def test_a_system_without_cgroups_has_none(tmp_path: Path) -> None:
    assert memory_limit(tmp_path / "nothing", tmp_path) == 0


def test_it_is_exposed() -> None:
    (family,) = memory_measured()
    assert [each.value for each in family.samples] == [memory_limit()]
