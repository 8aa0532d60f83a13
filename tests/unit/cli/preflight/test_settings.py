"""`preflight` on the settings of the running Reserver."""

from __future__ import annotations

from typing import Any

import pytest

from reserver.base.pacer import Backoff
from reserver.cli import preflight, preflight_programs
from reserver.errors import ApiError
from tests.unit.cli.preflight.objects import HOME, OWN, SPEC, an, keys, of, reservation


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
    found = list(preflight_programs.of_ceiling([reservation(OWN, {}), *own], [WORKER], there, HOME))
    assert len(found) == is_told
    if found:
        assert "tenants hold more than" in found[0].said
        assert found[0].said.endswith("% of the nodes' resources: held.cpu=2")
        assert "set tenantCeiling.cluster" in found[0].remedy
        assert not found[0].is_ok
    two = [WORKER, WORKER]
    assert not list(preflight_programs.of_ceiling([reservation(OWN, {})], two, there, HOME))


def test_flags_of_a_sidecar_are_looked_at_as_well() -> None:
    (found,) = preflight_programs.of_settings(sidecar("--rebalance-interval=5m"))
    assert "--rebalance-interval is not a flag of this version" in found.said


class Answering:
    """An API server that gives a list of answers, in turn."""

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
