"""`preflight` on applied manifests: missing objects, rights, CRDs and kube-scheduler."""

from __future__ import annotations

import json
from typing import Any

import pytest

from reserver.cli import preflight_files, preflight_holds, preflight_programs
from reserver.cli.preflight_files import Id
from tests.unit.cli.preflight.objects import HOME, an, of, role


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
    """`kubectl create -f` of a backup writes such an annotation."""
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
