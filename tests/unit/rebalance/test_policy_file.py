from pathlib import Path

import pytest
from structlog.testing import capture_logs

from reserver.errors import ConfigurationError
from reserver.rebalance.policy_file import PolicyFile

GOOD = """
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
maxNoOfPodsToEvictTotal: {most}
profiles: []
"""
BROKEN = "apiVersion: descheduler/v1alpha2\nkind: DeschedulerPolicy\nprofiles: 7\n"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "policy.yaml"


def limit(file: PolicyFile) -> int | None:
    return file.read(lambda _: None).limits.total


def test_a_file_that_changes_is_read_anew(path: Path) -> None:
    file = PolicyFile(path)
    for most in (1, 2):
        path.write_text(GOOD.format(most=most))
        assert limit(file) == most


def test_a_file_that_breaks_leaves_the_last_good_one_in_force_and_says_so_once(path: Path) -> None:
    file = PolicyFile(path)
    path.write_text(GOOD.format(most=1))
    limit(file)
    path.write_text(BROKEN)
    with capture_logs() as logs:
        assert limit(file) == 1
        assert limit(file) == 1
    (line,) = logs
    assert (line["log_level"], line["event"]) == (
        "error",
        "policy is broken, the last good one is in force",
    )
    assert "profiles" in line["why"]
    assert file.problems == (line["why"],)


def test_a_file_that_is_gone_leaves_the_last_good_one_in_force(path: Path) -> None:
    file = PolicyFile(path)
    path.write_text(GOOD.format(most=1))
    limit(file)
    path.unlink()
    assert limit(file) == 1
    assert file.problems == ("cannot be read: No such file or directory",)


def test_a_file_that_is_good_again_is_in_force(path: Path) -> None:
    file = PolicyFile(path)
    for text in (GOOD.format(most=1), BROKEN, GOOD.format(most=3)):
        path.write_text(text)
        latest = limit(file)
    assert latest == 3
    assert file.problems == ()


@pytest.mark.parametrize("text", [BROKEN, None], ids=["broken", "missing"])
def test_a_file_that_was_never_good_is_refused_with_its_problems(
    path: Path, text: str | None
) -> None:
    if text is not None:
        path.write_text(text)
    with pytest.raises(ConfigurationError, match=r"policy\.yaml: ."):
        limit(PolicyFile(path))
