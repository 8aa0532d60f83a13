"""The findings of `preflight`, and their remedies."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest

from reserver.base.pacer import Backoff
from reserver.cli import (
    preflight,
    preflight_ceiling,
    preflight_files,
    preflight_holds,
    preflight_programs,
)
from reserver.cli.preflight_files import Id
from reserver.cli.preflight_holds import WrittenSpec
from reserver.errors import ApiError
from reserver.k8s.objects.objects import LabelledConfigMap, LabelledMetadata, decode
from reserver.reservations.quota import Quota
from reserver.stores.object.codec import ReservationObject
from tests.builders import NOW

HOME = "reserver-system"
SPEC = {
    "owners": [{"pod": {"name": "web-0", "namespace": "shop"}}],
    "node": "worker-1",
    "resources": {"cpu": "2"},
}
OWN = SPEC | {"owners": [{"pod": {"name": "w"}}]}


def said(status: str = "Active", digest: str = "d") -> str:
    return json.dumps({"phase": status, "backed": True, "digest": digest})


def keys(companion: dict[str, str], **specs: Any) -> list[WrittenSpec]:
    data = {key: spec if isinstance(spec, str) else json.dumps(spec) for key, spec in specs.items()}
    configmap = LabelledConfigMap(LabelledMetadata("reservations", HOME), data)
    return list(preflight_holds.keys_of(configmap, companion, NOW))


def reservation(spec: dict[str, Any], status: dict[str, Any] | None = None) -> WrittenSpec:
    whole = {"phase": "Active", "observedGeneration": 1, "claimed": 0, "placements": []}
    item = {
        "metadata": {"name": "web", "namespace": "shop", "generation": 1},
        "spec": spec,
        "status": None if status is None else whole | {"claims": [], "conditions": []} | status,
    }
    found = decode(ReservationObject, json.dumps(item).encode())
    return preflight_holds.object_of(found, HOME, NOW)


def checks(found: Any) -> list[str]:
    return [f"{each.check}: {each}" for each in found]


def test_what_holds_and_is_read_alike_needs_nothing() -> None:
    written = [
        *keys({"a": said()}, a=SPEC),
        reservation(OWN, {}),
    ]
    assert not checks(preflight_holds.of_entries(written))


def test_what_would_be_invalid_or_beyond_a_bound_or_has_no_status_is_named() -> None:
    wrong = SPEC | {"slots": 0}
    many = SPEC | {"owners": [{"pod": {"name": f"w-{n}"}} for n in range(150)]}
    written = [
        *keys({"lost": said(), "old": said("Invalid")}, lost=wrong, old=wrong, new=SPEC),
        reservation(many, {}),
        reservation(OWN, {"observedGeneration": 0}),
    ]
    lost, beyond, unread = checks(preflight_holds.of_entries(written))
    assert lost.startswith(
        f"entries: 1 would be Invalid: {HOME}/reservations/lost: slots: 0 is out"
    )
    assert lost.endswith("; correct them before the upgrade")
    assert beyond.startswith("bounds: 1 hold on, and exceed a bound: shop/web: spec.owners: 150")
    assert unread.startswith(
        f"status: 2 have no status yet: {HOME}/reservations/new, shop/web; wait"
    )


def test_of_many_some_are_named() -> None:
    written = keys(
        dict.fromkeys("abcdefg", said()), **dict.fromkeys("abcdefg", SPEC | {"slots": 0})
    )
    (line,) = checks(preflight_holds.of_entries(written))
    assert "7 would be Invalid" in line
    assert " and 2 more; correct" in line
    assert "/f: " not in line


SCHEMA = {
    "properties": {
        "owners": {"items": {"properties": {"pod": {"properties": {"name": {}, "namespace": {}}}}}},
        "resources": {"additionalProperties": {"type": "string"}},
        "node": {},
        "placement": {"x-kubernetes-preserve-unknown-fields": True, "properties": {"a": {}}},
    }
}
UNKNOWN = partial(preflight_files.unknown_fields, schema=SCHEMA)


@pytest.mark.parametrize("is_strict", [True, False])
def test_fields_that_the_other_version_lacks_are_named(*, is_strict: bool) -> None:
    more = {"retain": True, "placement": {"b": 1}}
    seat = SPEC | {"owners": [{"pod": {"name": "w"}, "replaces": {"uid": "u"}}]}
    written = [
        *keys({}, a=SPEC | more, b=SPEC),
        reservation(SPEC | more, {}),
        reservation(seat, {}),
    ]
    found = list(preflight_holds.of_fields(written, UNKNOWN, is_strict=is_strict))
    assert [each.is_ok for each in found] == [not is_strict, False, False]
    key, lost, of_seat = map(str, found)
    assert "retain" in key
    assert ("would be Invalid, and hold nothing" in key) is is_strict
    assert lost == "1 would lose retain: shop/web; write it again afterwards"
    assert of_seat.startswith(
        "1 would lose owners[].replaces: shop/web; run `kubectl delete podmoves "
    )


@pytest.mark.parametrize(
    ("field", "command"),
    [
        ({"lend": {"belowPriority": 0}}, "`kubectl --namespace shop patch reservation web "),
        ({"schedule": {"every": "22:00"}}, "`kubectl --namespace shop delete reservation web`"),
        ({"nodes": {"count": 1}}, "`kubectl --namespace shop delete reservation web`, and taint"),
    ],
)
@pytest.mark.parametrize("is_strict", [True, False])
def test_a_field_that_bounds_what_is_held_or_lent_goes_first(
    field: dict[str, Any], command: str, *, is_strict: bool
) -> None:
    written = [*keys({}, a=SPEC | field), reservation(SPEC | field, {})]
    key, lost = preflight_holds.of_fields(written, UNKNOWN, is_strict=is_strict)
    assert (key.is_ok, lost.is_ok) == (False, False)
    what = "it" if "lend" in field else "the entry"
    edit = f"`kubectl --namespace {HOME} edit configmap reservations`"
    assert key.remedy == f"for each, remove {what} first: {edit}"
    assert command in lost.remedy


def test_what_exceeds_a_quota_that_is_new_is_named() -> None:
    default = Quota(name="default", hard={"held.cpu": 3000}, max_ttl=3600.0)
    small = reservation(OWN | {"ttl": "1h"}, {})
    for written, expected in (([small], 1), ([small, small], 1), (keys({}, a=SPEC), 0)):
        for quota in (default, None):
            found = list(preflight_holds.of_quotas(written, quota, HOME))
            assert len(found) == (expected if quota else 0)
    assert not list(preflight_holds.of_quotas([small], default, "shop"))
    (line,) = checks(preflight_holds.of_quotas([small, small], default, HOME))
    assert line.startswith("quotas: shop: exceeded quota: default, requested: ")


def move(phase: str | None) -> dict[str, Any]:
    status = {} if phase is None else {"status": {"phase": phase}}
    return {"metadata": {"namespace": "shop", "name": f"m-{phase}"}, **status}


def test_moves_go_on_where_seats_are_kept_and_have_to_end_elsewhere() -> None:
    moves = [move("Landing"), move("Succeeded"), move(None)]
    (goes_on,) = preflight_holds.of_moves(moves, keeps_seats=True)
    assert goes_on.is_ok
    assert goes_on.said == "2 under way, which go on: shop/m-Landing, shop/m-None"
    (end,) = preflight_holds.of_moves(moves, keeps_seats=False)
    assert not end.is_ok
    assert "`kubectl delete podmoves --all --all-namespaces`" in end.remedy
    assert not list(preflight_holds.of_moves([move("Failed")], keeps_seats=False))


def an(kind: str, name: str, **more: Any) -> dict[str, Any]:
    metadata = {"name": name, **more.pop("metadata", {})}
    return {"kind": kind, "metadata": metadata, **more}


def of(*objects: dict[str, Any]) -> Any:
    return preflight_files.identified(objects, HOME)


def test_what_the_files_lack_is_named_with_what_removes_it() -> None:
    helms = {"labels": {"app.kubernetes.io/managed-by": "Helm"}}
    here = of(
        an("PodDisruptionBudget", "reserver"),
        an("NetworkPolicy", "reserver", metadata=helms),
        an("ConfigMap", "kube-scheduler-config-1"),
        an("ConfigMap", "reservations"),
        an("ClusterRole", "reserver-view"),
        an("ClusterRole", "edit"),
        an("CustomResourceDefinition", "podmoves.reserver.io"),
        an("CustomResourceDefinition", "jobs.example.com"),
        an("Event", "reserver"),
    )
    there = of(an("ClusterRole", "reserver-view"))
    lines = [str(each) for each in preflight_files.of_leftovers(here, there)]
    assert lines == [
        (
            "configmap/kube-scheduler-config-1 is not in the files; once they are applied, run "
            f"`kubectl --namespace {HOME} delete configmap/kube-scheduler-config-1`"
        ),
        (
            "customresourcedefinition/podmoves.reserver.io is not in the files; keep it, or lose "
            "its objects: `kubectl delete customresourcedefinition/podmoves.reserver.io`"
        ),
        (
            "poddisruptionbudget/reserver is not in the files; once they are applied, run "
            f"`kubectl --namespace {HOME} delete poddisruptionbudget/reserver`"
        ),
    ]


def bound_to(role: str) -> dict[str, Any]:
    return an("ClusterRoleBinding", "reserver", roleRef={"kind": "ClusterRole", "name": role})


def selecting(label: str) -> dict[str, Any]:
    return an("Deployment", "reserver", spec={"selector": {"matchLabels": {"a": label}}})


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        (bound_to("a"), bound_to("b"), "is for another role"),
        (selecting("a"), selecting("b"), "selects other pods"),
        (
            an("Deployment", "reserver", spec={"strategy": {"type": "RollingUpdate"}}),
            an("Deployment", "reserver", spec={"strategy": {"type": "Recreate"}}),
            "is rolled out, and would be recreated",
        ),
        (
            an("ConfigMap", "c", data={"a": "1"}, immutable=True),
            an("ConfigMap", "c", data={"a": "2"}, immutable=True),
            "is immutable, and differs",
        ),
        (
            an("ConfigMap", "c", data={"a": "1"}, immutable=True),
            an("ConfigMap", "c", data={"a": "1"}),
            "is immutable, and differs",
        ),
    ],
)
def test_what_cannot_be_applied_is_named(old: Any, new: Any, line: str) -> None:
    (found,) = preflight_files.of_apply(of(old), of(new))
    assert line in found.said
    assert "run `kubectl" in found.remedy
    assert not list(preflight_files.of_apply(of(old), of(old)))


APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def store(applied: object, **data: str) -> dict[str, Any]:
    document = an("ConfigMap", "reservations", data=data)
    document["metadata"] |= {
        "labels": {"reserver.io/store": "true"},
        "annotations": {APPLIED: json.dumps(applied)},
    }
    return document


def test_entries_that_kubectl_believes_to_have_applied_are_named() -> None:
    """`kubectl create -f` writes so much into the annotation when it restores a backup."""
    shipped, restored = store({}), store({"data": {"a": "1", "b": "2"}}, a="1", b="3", c="4")
    (found,) = preflight_files.of_stores(of(restored), of(shipped))
    assert found.said.endswith("would lose 2 entries to `kubectl apply`, such as a")
    assert found.remedy.endswith(f"annotate configmap/reservations {APPLIED}-`")
    for harmless in (store({}, a="1"), store({"data": {"gone": "1"}}, a="1"), an("ConfigMap", "c")):
        assert not list(preflight_files.of_stores(of(harmless), of(shipped, an("ConfigMap", "c"))))


@pytest.mark.parametrize("broken", ["", "{", "[]", "7", '{"data": ["a"]}', '{"data": 7}'])
def test_an_annotation_that_nobody_can_read_is_no_finding_and_no_error(broken: str) -> None:
    restored = store({}, a="1")
    restored["metadata"]["annotations"] = {APPLIED: broken}
    assert not list(preflight_files.of_stores(of(restored), of(store({}))))


def service(**selector: str) -> dict[str, Any]:
    return an("Service", "reserver", spec={"selector": selector})


def test_a_service_that_would_select_no_running_pod_is_named() -> None:
    here, there = of(service(app="r")), of(service(app="r", serving="true"))
    (found,) = preflight_files.of_services(here, there, [{"app": "r"}, {"app": "x"}])
    assert found.said == "service/reserver would select no pod that runs: serving=true is missing"
    assert f"`kubectl --namespace {HOME} label pods -l app=r serving=true`" in found.remedy
    for pods in ([{"app": "r", "serving": "true"}], []):
        assert not list(preflight_files.of_services(here, there, pods))


def role(*rules: dict[str, Any]) -> dict[str, Any]:
    return an("ClusterRole", "reserver", rules=list(rules))


def test_rights_and_fields_of_crds_that_differ_are_shown() -> None:
    pods = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}
    named = {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["get"]}
    here = of(role(pods))
    there = of(role(pods | {"verbs": ["get"]}, named | {"resourceNames": ["a"]}))
    (found,) = preflight_files.of_rights(here, there)
    assert found.is_ok
    assert str(found) == "clusterrole/reserver gains get deployments.apps a; loses list pods"
    assert not list(preflight_files.of_rights(here, here))

    def crd(**fields: Any) -> dict[str, Any]:
        schema = {"openAPIV3Schema": {"properties": {"spec": {"properties": fields}}}}
        versions = [{"storage": False}, {"storage": True, "schema": schema}]
        return an(
            "CustomResourceDefinition", "reservations.reserver.io", spec={"versions": versions}
        )

    old, new = crd(a={}, b={"items": {"properties": {"c": {}}}}), crd(a={}, d={})
    (found,) = preflight_files.of_crds(of(old), of(new))
    assert found.said == "reservations.reserver.io: adds d; drops b"
    assert not list(preflight_files.of_crds(of(old), of(old)))


def scheduler(image: str, config: str) -> Any:
    containers = [{"image": image}]
    spec = {"template": {"spec": {"initContainers": [{}], "containers": containers}}}
    data = {"kube-scheduler.yaml": config}
    return of(
        an("Deployment", "reserver-scheduler", spec=spec),
        an("ConfigMap", "kube-scheduler-config-x", data=data),
    )


def crd_of(plural: str, **fields: Any) -> dict[str, Any]:
    schema = {"openAPIV3Schema": {"properties": {"spec": {"properties": fields}}}}
    versions = [{"storage": True, "schema": schema}]
    name = f"{plural}.reserver.io"
    return an("CustomResourceDefinition", name, spec={"versions": versions})


WINDOWS, QUOTAS = "maintenancewindows", "reservationquotas"
WINDOW = an("MaintenanceWindow", "night", spec={"start": "x", "drainBefore": "1h"})


@pytest.mark.parametrize(
    ("plural", "there", "is_first", "lines"),
    [
        (
            "maintenancewindows",
            of(crd_of("maintenancewindows", start={}, drainBefore={})),
            False,
            [],
        ),
        ("maintenancewindows", {}, False, []),
        ("maintenancewindows", {}, True, ["1 maintenancewindows have no effect then: night"]),
        (
            "maintenancewindows",
            of(crd_of("podmoves")),
            False,
            ["1 maintenancewindows have no effect then: night"],
        ),
        (
            "maintenancewindows",
            of(crd_of("maintenancewindows", start={})),
            False,
            ["1 maintenancewindows would lose drainBefore: night; write them again afterwards"],
        ),
        (
            "maintenancewindows",
            of(crd_of("maintenancewindows", start={"enum": ["y"]}, drainBefore={})),
            False,
            ["1 maintenancewindows have start: x, which that version does not: night; run `"],
        ),
        ("schedpatches", {}, True, []),
        (
            "reservationquotas",
            of(crd_of("podmoves")),
            False,
            ["1 reservationquotas have no effect"],
        ),
    ],
)
def test_what_another_version_does_not_carry_out_is_named(
    plural: str, there: Any, lines: list[str], *, is_first: bool
) -> None:
    found = list(preflight_holds.of_features({plural: [WINDOW]}, there, is_first=is_first))
    for each, line in zip(found, lines, strict=True):
        assert str(each).startswith(line)
        assert each.is_ok is (plural == QUOTAS)


def test_moves_that_have_ended_do_not_matter() -> None:
    moves = {"podmoves": [move("Succeeded")]}
    assert not list(preflight_holds.of_features(moves, of(role()), is_first=True))


def test_each_field_that_the_first_version_lacks_is_named() -> None:
    """Its CRD is fixed, so whatever field is added one day is named."""
    unknown = preflight._unknown_to({}, (0, 1))
    spec = SPEC | {"lend": {}, "someday": 1, "placements": []}
    spec["owners"] = [{"pod": {"name": "w"}, "replaces": {}}]
    assert list(unknown(spec)) == ["lend", "owners[].replaces", "someday"]
    assert not list(unknown(SPEC))
    assert not list(unknown([{"pod": "w"}]))
    (lent,) = preflight_holds.of_fields(
        [reservation(SPEC | {"lend": {"belowPriority": 1}}, {})], unknown, is_strict=True
    )
    assert "borrowers" in lent.remedy


def test_what_the_command_of_this_version_has_is_no_field_of_a_newer_one() -> None:
    unknown = preflight._unknown_to({}, preflight._own())
    assert not list(unknown(SPEC | {"lend": {"belowPriority": 1}}))


def serving(*args: str, **env: str) -> Any:
    container = {
        "command": ["reserver", "serve"],
        "args": list(args),
        "env": [{"name": name, "value": value} for name, value in env.items()],
    }
    others = {"command": ["kube-scheduler"], "args": ["--whatever"]}
    spec = {"template": {"spec": {"containers": [others, container]}}}
    return of(an("Deployment", "reserver", spec=spec))


def configured(text: str) -> Any:
    return of(an("ConfigMap", "mine", data={"reserver.yaml": text}))


MINE = "configmap/mine: reserver.yaml:"
BEGIN = "apiVersion: reserver.io/v1alpha1\nkind: ReserverConfiguration\n"


@pytest.mark.parametrize(
    ("there", "lines"),
    [
        (serving("--leader-elect", "--no-crd", "--http-port=9440", RESERVER_POD_NAME="p"), []),
        (
            serving("--rebalance-interval=5m"),
            ["deployment/reserver: --rebalance-interval is not a flag of this version"],
        ),
        (
            serving(RESERVER_DEFAULT_QUTOA="none"),
            ["deployment/reserver: RESERVER_DEFAULT_QUTOA: is not a setting of Reserver"],
        ),
        (configured(f"{BEGIN}warnBeforeExpiry: 30m\n"), []),
        (configured("kind: KubeSchedulerConfiguration\nnonsense: 1\n"), []),
        (
            configured(f"{BEGIN}warnBeforExpiry: 30m\nfeatureGates: {{Lendings: true}}\n"),
            [
                "configmap/mine: reserver.yaml: warnBeforExpiry",
                "configmap/mine: reserver.yaml: fea",
            ],
        ),
    ],
)
def test_settings_with_which_it_would_not_start_are_named(there: Any, lines: list[str]) -> None:
    found = list(preflight_programs.of_settings(there))
    for each, line in zip(found, lines, strict=True):
        assert str(each).startswith(line)
        assert each.remedy
        assert not each.is_ok


WORKER = {"status": {"allocatable": {"cpu": "2", "memory": "64Gi"}}}


def sidecar(*args: str) -> Any:
    """Return a Deployment in whose pod Reserver is a sidecar."""
    reserver = {"command": ["reserver", "serve"], "args": list(args)}
    pod = {"initContainers": [reserver], "containers": [{"command": ["kube-scheduler"]}]}
    return of(an("Deployment", "reserver-scheduler", spec={"template": {"spec": pod}}))


@pytest.mark.parametrize(
    ("there", "is_told"),
    [
        (sidecar(), True),
        (sidecar("--tenant-ceiling-cluster=100%"), False),
        (sidecar("--tenant-ceiling-cluster=90%"), True),
        (sidecar("--keep-held-nodes", "--capacity-buffers"), False),
        (serving(RESERVER_TENANT_CEILING_CLUSTER="none"), False),
        (configured(f"{BEGIN}tenantCeiling: {{cluster: none}}\n"), False),
        (configured(f"{BEGIN}featureGates: {{CapacityBuffers: true}}\n"), False),
        (configured(f"{BEGIN}tenantCeiling: {{cluster: 7}}\n"), True),
    ],
)
def test_what_tenants_hold_beyond_the_ceiling_is_named(there: Any, *, is_told: bool) -> None:
    own = keys({}, a=SPEC)  # Reserver's own namespace is no tenant.
    found = list(preflight_ceiling.of_ceiling([reservation(OWN, {}), *own], [WORKER], there, HOME))
    assert len(found) == is_told
    if found:
        assert "tenants hold more than" in found[0].said
        assert found[0].said.endswith("% of the nodes' resources: held.cpu=2")
        assert "set tenantCeiling.cluster" in found[0].remedy
        assert not found[0].is_ok
    two = [WORKER, WORKER]
    assert not list(preflight_ceiling.of_ceiling([reservation(OWN, {})], two, there, HOME))


def test_flags_of_a_sidecar_are_looked_at_as_well() -> None:
    (found,) = preflight_programs.of_settings(sidecar("--rebalance-interval=5m"))
    assert "--rebalance-interval is not a flag of this version" in found.said


class Answering:
    """An API server that gives some answers, one after the other."""

    def __init__(self, *answers: ApiError | bytes) -> None:
        self.answers = [*answers]

    async def get(self, *_: Any) -> bytes:
        answer = self.answers.pop(0)
        if isinstance(answer, ApiError):
            raise answer
        return answer


async def test_an_api_server_that_is_busy_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async def at_once(_: Any) -> None: ...

    monkeypatch.setattr(Backoff, "sleep", at_once)
    busy = ApiError(429, "TooManyRequests", "storage is (re)initializing")
    assert await preflight._Looking(Answering(busy, b"{}"), HOME)._get("/version") == b"{}"
    for other in (ApiError(403, "Forbidden", "no"), ApiError(0, "", "connection refused")):
        with pytest.raises(ApiError):
            await preflight._Looking(Answering(other, b"{}"), HOME)._get("/version")


def test_kube_scheduler_is_compared() -> None:
    here, there = (
        scheduler("r/kube-scheduler:v1.36.0", "a"),
        scheduler("r/kube-scheduler:v1.37.0", "b"),
    )
    newer, restarts = preflight_programs.of_scheduler(here, there, "v1.36.2")
    assert "kube-scheduler v1.37.0, newer than the API server (v1.36.2)" in newer.said
    assert (newer.is_ok, restarts.is_ok) == (False, True)
    assert not list(preflight_programs.of_scheduler(here, here, "v1.36.2"))
    (none,) = preflight_programs.of_scheduler(here, of(role()), "v1.36.2")
    assert "kube-scheduler-extender.yaml" in none.said
    assert Id("Deployment", HOME, "reserver-scheduler") in here
