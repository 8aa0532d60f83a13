"""The strategy of pods: pkg/registry/core/pod/strategy.go and pkg/apis/core/validation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from reserver_demo.apiserver.pod_defaults import admit, initial_status, set_defaults
from reserver_demo.apiserver.status import Cause, Json, forbidden_value, required
from reserver_demo.apiserver.strategy import Lookup, Strategy, keep, show_times

_MUTABLE = (
    "`spec.containers[*].image`",
    "`spec.initContainers[*].image`",
    "`spec.activeDeadlineSeconds`",
    "`spec.tolerations` (only additions to existing tolerations)",
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)",
)
_MUTABLE_WHILE_GATED = ("nodeSelector", "affinity")


def _admit(pod: Json, lookup: Lookup) -> None:
    admit(pod, lookup("priorityclasses"))


def _prepare_create(pod: Json) -> None:
    pod["metadata"]["generation"] = 1
    set_defaults(pod)
    pod["status"] = initial_status(pod)


def _prepare_update(new: Json, old: Json) -> None:
    keep("status", new, old)
    if new.get("spec") != old["spec"]:
        new["metadata"]["generation"] = old["metadata"]["generation"] + 1


def _prepare_status(new: Json, old: Json) -> None:
    keep("spec", new, old)
    owners = old["metadata"].get("ownerReferences")
    new["metadata"].pop("ownerReferences", None)
    if owners is not None:
        new["metadata"]["ownerReferences"] = owners
    status = new.setdefault("status", {})
    status.setdefault("qosClass", old["status"]["qosClass"])
    show_times(status, "lastProbeTime", "lastTransitionTime")


def _check(pod: Json) -> Iterator[Cause]:
    spec = pod["spec"]
    if not spec.get("containers"):
        yield required("spec.containers")
    for kind in ("initContainers", "containers"):
        for index, container in enumerate(spec.get(kind, ())):
            path = f"spec.{kind}[{index}]"
            for field in ("name", "image"):
                if not container.get(field):
                    yield required(f"{path}.{field}")


def _check_update(new: Json, old: Json) -> Iterator[Cause]:
    gated = bool(old["spec"].get("schedulingGates"))
    if _frozen(new["spec"], gated=gated) == _frozen(old["spec"], gated=gated):
        was, now = old["spec"].get("tolerations", []), new["spec"].get("tolerations", [])
        if any(toleration not in now for toleration in was):
            yield forbidden_value("spec.tolerations", "existing toleration can not be modified")
        return
    yield forbidden_value(
        "spec", f"pod updates may not change fields other than {','.join(_MUTABLE)}"
    )


def _frozen(spec: Json, *, gated: bool) -> Json:
    """Return the part of a pod's spec that no update may change."""
    frozen: Json = {
        key: value
        for key, value in spec.items()
        if key not in {"activeDeadlineSeconds", "tolerations"}
        and not (gated and key in {*_MUTABLE_WHILE_GATED, "schedulingGates"})
    }
    for kind in ("initContainers", "containers"):
        if kind in frozen:
            frozen[kind] = [_without_image(container) for container in frozen[kind]]
    return frozen


def _without_image(container: Json) -> dict[str, Any]:
    return {key: value for key, value in container.items() if key != "image"}


def _grace(pod: Json, asked: int | None) -> int:
    """Return the seconds from deletion to removal (`CheckGracefulDelete`)."""
    if not pod["spec"].get("nodeName") or pod["status"].get("phase") in {"Succeeded", "Failed"}:
        return 0
    seconds: int = pod["spec"].get("terminationGracePeriodSeconds", 0) if asked is None else asked
    return seconds if seconds >= 0 else 1


POD = Strategy(
    admit=_admit,
    prepare_create=_prepare_create,
    prepare_update=_prepare_update,
    prepare_status=_prepare_status,
    check=_check,
    check_update=_check_update,
    grace=_grace,
    returns_deleted=True,
)
