"""ReservationQuotas as they are written, and the setting that says the same."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from reserver.errors import InvalidInput
from reserver.k8s.objects.objects import Metadata, ResourceMetadata, encode
from reserver.reservations.quota import Quota
from reserver.settings.serve import DEFAULT_QUOTA
from reserver.stores.quota_codec import (
    QuotaObject,
    QuotaSpec,
    QuotaStatus,
    parse_default,
    patch,
    read_object,
    show,
)

CRD = Path(__file__).parents[3] / "scheduler-config/core/crd-quota.yaml"


def read(spec: Any) -> Quota:
    raw = msgspec.Raw(encode(spec))
    return read_object(QuotaObject(metadata=ResourceMetadata(name="team"), spec=raw))


def test_a_quota_is_read_in_the_units_of_reservations() -> None:
    hard = {
        "reservations": 5,
        "held.cpu": "1500m",
        "held.memory": "1Gi",
        "held.x.io/gpu": 2,
        "held.nodes": 3,
    }
    spec = {"hard": hard, "maxTTL": "90m", "nodeNames": "Forbidden", "firmHolds": "Forbidden"}
    assert read(spec) == Quota(
        name="team",
        hard={
            "reservations": 5,
            "held.cpu": 1500,
            "held.memory": 2**30,
            "held.x.io/gpu": 2,
            "held.nodes": 3,
        },
        max_ttl=5400.0,
        allows_node_names=False,
        allows_firm_holds=False,
    )
    assert read({}) == Quota(name="team", hard={})


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"hard": {"cpu": 1}}, "spec.hard.cpu"),
        ({"hard": {"held.": 1}}, "spec.hard.held."),
        ({"hard": {"held.cpus": 1}}, "spec.hard.held.cpus"),
        ({"hard": {"held.requests.x.io/gpu": 1}}, "spec.hard.held.requests.x.io/gpu"),
        ({"hard": {"reservations": -1}}, "spec.hard.reservations"),
        ({"hard": {"held.cpu": "many"}}, "spec.hard.held.cpu"),
        ({"hard": {f"held.a.io/r{number}": 1 for number in range(65)}}, "spec.hard"),
        ({"maxTTL": "0"}, "spec.maxTTL"),
        ({"maxTTL": "1d"}, "spec.maxTTL"),
        ({"nodeNames": "No"}, "spec.nodeNames"),
        ({"firmHolds": True}, "spec.firmHolds"),
        ({"hards": {}}, "spec"),
        ([], "spec"),
    ],
)
def test_what_is_no_quota_is_refused_with_the_name_of_the_field(spec: Any, path: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        read(spec)
    assert refusal.value.path == path


def test_the_default_limits_each_resource_and_the_time() -> None:
    default = parse_default(DEFAULT_QUOTA)
    assert default is not None
    assert default.max_ttl == 168 * 3600
    for resource in ("cpu", "memory", "pods", "ephemeral-storage", "hugepages-2Mi", "x.io/gpu"):
        assert default.limit(f"held.{resource}") is not None
    assert default.limit("reservations") == 100
    assert default.limit("held.x.io/gpu") == 0


def test_a_default_may_be_none_or_say_all_that_a_quota_says() -> None:
    assert parse_default("none") is None
    found = parse_default(" held.cpu=1, maxTTL=1h,nodeNames=Forbidden,firmHolds=Forbidden")
    assert found == Quota(
        name="default",
        hard={"held.cpu": 1000},
        max_ttl=3600.0,
        allows_node_names=False,
        allows_firm_holds=False,
    )


@pytest.mark.parametrize(
    "text", ["", "cpu=1", "held.cpu", "held.cpu=", "held.cpu=1,held.cpu=2", "maxTTL=1d", "hard=1"]
)
def test_what_is_no_default_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        parse_default(text)


def test_a_status_says_what_is_used_of_what_is_limited() -> None:
    quota = read({"hard": {"held.cpu": 4, "reservations": 2, "held.*": 9}})
    used = {"held.cpu": 1500, "held.memory": 2**30, "held.x.io/gpu": 1, "reservations": 1}
    status = show(quota, used)
    assert status.hard == {"held.cpu": "4", "reservations": "2", "held.*": "9"}
    assert status.used == {
        "held.cpu": "1500m",
        "held.memory": "1Gi",
        "held.x.io/gpu": "1",
        "reservations": "1",
    }


def test_a_patch_removes_what_is_not_limited_any_more() -> None:
    before = QuotaStatus({"held.cpu": "4"}, {"held.cpu": "1"})
    after = QuotaStatus({"reservations": "2"}, {"reservations": "0"})
    assert patch(Metadata(resource_version="7"), before, after) == {
        "metadata": {"resourceVersion": "7"},
        "status": {
            "hard": {"held.cpu": None, "reservations": "2"},
            "used": {"held.cpu": None, "reservations": "0"},
        },
    }


def test_the_schema_and_the_reader_know_the_same_fields() -> None:
    (version,) = yaml.safe_load(CRD.read_text())["spec"]["versions"]
    schema = version["schema"]["openAPIV3Schema"]["properties"]
    for part, kind in (("spec", QuotaSpec), ("status", QuotaStatus)):
        known = {field.encode_name for field in msgspec.structs.fields(kind)}
        assert schema[part]["properties"].keys() == known
