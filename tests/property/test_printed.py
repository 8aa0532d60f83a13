"""The command line accepts the amounts, durations, times and owners that it prints."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

from hypothesis import given
from hypothesis import strategies as st

from reserver.cli import formatting, owner_flags, times
from reserver.client import OwnerSelector, PodOwner
from reserver.client.values import ControllerOwner
from reserver.cluster import quantity

NAMES = st.from_regex(r"[a-z]([a-z0-9-]{0,10}[a-z0-9])?", fullmatch=True)
ZONES = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
MOMENTS = st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1), timezones=ZONES)  # noqa: DTZ001 - they have zones
SIZES = st.integers(0, 2**53) | st.builds(
    lambda number, size: number * size,
    st.integers(1, 2000),
    st.sampled_from([10**3, 10**6, 10**9, 2**10, 2**20, 2**30]),
)


@given(st.sampled_from(["cpu", "memory", "pods", "nvidia.com/gpu"]), SIZES)
def test_an_amount_is_taken_as_it_is_printed(resource: str, amount: int) -> None:
    shown = quantity.show(resource, amount)
    assert quantity.amount(resource, shown) == amount


@given(st.sampled_from(["cpu", "memory"]), SIZES)
def test_an_amount_is_printed_in_one_way_however_it_was_written(resource: str, amount: int) -> None:
    plain = f"{amount}m" if resource == "cpu" else str(amount)
    spelled = [plain, quantity.show(resource, amount)]
    if resource == "cpu":
        spelled.append(f"{amount // 1000}.{amount % 1000:03d}")
    assert len({formatting.holds({resource: text}) for text in spelled}) == 1


@given(st.integers(0, 10**9))
def test_a_duration_is_taken_as_it_is_printed(seconds: int) -> None:
    shown = formatting.duration(seconds)
    taken = times.duration("--ttl", shown)
    assert formatting.duration(taken.total_seconds()) == shown
    assert abs(taken.total_seconds() - seconds) <= max(0.5 * 3600, 0.02 * seconds)


@given(MOMENTS, st.timedeltas(timedelta(0), timedelta(days=400)))
def test_a_moment_is_taken_as_it_is_printed(now: datetime, ahead: timedelta) -> None:
    when = (now + ahead).replace(second=0, microsecond=0)
    shown = formatting.moment(when, now)

    def here(naive: datetime) -> datetime:
        return naive.replace(tzinfo=now.tzinfo)

    if when > now:  # A clock time alone is the next one.
        assert times.moment("--expires-at", shown, now, here) == when


@given(NAMES, NAMES, st.sampled_from(["Job", "ReplicaSet", "Deployment"]))
def test_an_owner_is_taken_as_it_is_printed(namespace: str, name: str, kind: str) -> None:
    pod = PodOwner(namespace=namespace, name=name)
    assert owner_flags.owner(formatting.owner(pod), "other") == {
        "pod": {"name": name, "namespace": namespace}
    }
    made = OwnerSelector(namespace=namespace, controller=ControllerOwner(kind, name))
    assert owner_flags.owner(formatting.owner(made), "other") == {
        "controller": {"kind": kind, "name": name, "namespace": namespace}
    }


@given(NAMES, NAMES, NAMES, st.sampled_from(["", "app.kubernetes.io/", "x/"]))
def test_labels_are_taken_as_they_are_printed(
    namespace: str, key: str, value: str, prefix: str
) -> None:
    labels = {f"{prefix}{key}": value, "tier": "a"}
    owner = OwnerSelector(namespace=namespace, match_labels=labels)
    assert owner_flags.owner(formatting.owner(owner), "other") == {
        "selector": {"matchLabels": labels, "namespace": namespace}
    }


def test_days_are_named() -> None:
    now = datetime(2030, 1, 31, 14, 0, tzinfo=UTC)
    shown = [formatting.moment(now + timedelta(hours=n), now) for n in (1, 25, 49)]
    assert shown == ["15:00", "15:00 tomorrow", "2030-02-02 15:00"]
