"""The observed MaintenanceWindows."""

from __future__ import annotations

from msgspec import Raw

from reserver.base.pacer import outcome
from reserver.k8s.objects.objects import ResourceMetadata, encode
from reserver.maintenance.codec import MOST_WINDOWS, WindowObject
from reserver.maintenance.observe import KnownWindows

SPEC = {"start": "2030-01-01T00:00:00Z", "end": "2030-01-01T01:00:00Z", "nodes": ["a"]}


def written(name: str, revision: int) -> WindowObject:
    metadata = ResourceMetadata(name=name, uid=f"uid-{name}", resource_version=str(revision))
    return WindowObject(metadata, Raw(encode(SPEC)))


def read(windows: KnownWindows) -> set[str]:
    return {known.metadata.name for known in windows if known.window is not None}


def test_one_too_many_is_not_read_however_often_it_changes() -> None:
    """Reserver's own write of the status once caused a read."""
    windows = KnownWindows(lambda: None)
    for number in range(MOST_WINDOWS):
        windows.put(written(f"w{number}", 1 + number))
    for revision in (1_001, 1_002):
        windows.put(written("more", revision))
        assert "more" not in read(windows)


def test_one_too_many_is_read_once_another_is_deleted() -> None:
    windows = KnownWindows(lambda: None)
    for number in range(MOST_WINDOWS):
        windows.put(written(f"w{number}", 1 + number))
    windows.put(written("more", 1_001))
    windows.put(written("last", 1_002))
    outcome(windows.view().deleted(written("w7", 1_003)))
    assert len(read(windows)) == MOST_WINDOWS
    assert "more" in read(windows)
    windows.put(written("w8", 1_004))  # One that is read is read again.
    assert {"w8", "more"} <= read(windows)


def test_a_window_that_is_deleted_while_its_status_is_written_stays_deleted() -> None:
    windows = KnownWindows(lambda: None)
    windows.put(written("w", 1))
    (known,) = windows
    outcome(windows.view().deleted(written("w", 3)))
    windows.answered(known, written("w", 2))
    assert list(windows) == []


def test_the_response_to_a_write_is_stored_before_the_watch_shows_it() -> None:
    windows = KnownWindows(lambda: None)
    windows.put(written("w", 1))
    (known,) = windows
    windows.answered(known, written("w", 2))
    assert [each.metadata.revision for each in windows] == [2]
