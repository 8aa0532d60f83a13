"""Findings about an installation: each is a decision on a document that somebody has fetched."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from reserver import DISTRIBUTION

_MOST_DRIFT_S = 2.0
"""So far the clocks of this machine and of Reserver may be apart."""

_CRDS = {
    "reservations": "kubectl apply -k scheduler-config/core",
    "reservationquotas": "kubectl apply -k scheduler-config/core",
    "podmoves": "kubectl apply -k scheduler-config/components/moves",
}
"""The resources of reserver.io that commands read, and how to install each."""


class Finding(NamedTuple):
    """A finding.

    Attributes:
        check: the subject.
        is_ok: whether nothing is to be done.
        said: what was found.
    """

    check: str
    is_ok: bool
    said: str
    remedy: str = ""

    def __str__(self) -> str:
        """Return one line."""
        return f"{self.said}; {self.remedy}" if self.remedy else self.said


def of_dump(
    dump: Mapping[str, Any], version: str, now: datetime, took_s: float
) -> Iterator[Finding]:
    """Yield findings about the running Reserver.

    Args:
        dump: as `reserver dump` prints it.
        version: of this command.
        now: when the dump had come.
        took_s: how long the call took.
    """
    serves = str(dump["versions"].get(DISTRIBUTION, "unknown"))
    if serves == version:
        yield Finding("version", True, f"{version}, here and in the cluster")
    else:
        remedy = "install the same version here and there"
        yield Finding("version", False, f"{version} here, {serves} in the cluster", remedy)
    obstacles = list(dump["obstacles"])
    if obstacles:
        said = f"not ready: {'; '.join(map(str, obstacles))}"
        yield Finding("ready", False, said, "look at the log of its pod")
    else:
        counts = ", ".join(f"{dump[each]} {each}" for each in ("nodes", "pods", "reservations"))
        yield Finding("ready", True, f"it sees {counts}")
    apart_s = (now - datetime.fromisoformat(dump["writtenAt"])).total_seconds()
    if -_MOST_DRIFT_S <= apart_s <= _MOST_DRIFT_S + took_s:
        yield Finding("clock", True, "that of this machine agrees with Reserver's")
    else:
        said = f"that of this machine is {abs(apart_s):.0f}s {'ahead' if apart_s > 0 else 'behind'}"
        yield Finding("clock", False, said, "set it: a time without a zone, such as 22:00, is its")


def of_resources(served: Collection[str]) -> Iterator[Finding]:
    """Yield findings about the CRDs, from the resources of reserver.io that are served."""
    for name, command in _CRDS.items():
        if name in served:
            yield Finding(f"{name}.reserver.io", True, "installed")
        else:
            yield Finding(f"{name}.reserver.io", False, "not installed", f"run `{command}`")


def of_webhooks(names: Collection[str], *, wanted: bool) -> Finding:
    """Return a finding about the webhook for new pods.

    Args:
        names: of the webhook configurations.
        wanted: SchedPatches are served, which have no effect without it.
    """
    if "reserver" in names:
        return Finding("webhook", True, "installed")
    if wanted:
        remedy = "run `kubectl apply -k scheduler-config/components/webhooks`"
        return Finding("webhook", False, "not installed, and SchedPatches need it", remedy)
    return Finding("webhook", True, "not installed, and nothing needs it")


def of_rights(allowed: Mapping[str, bool], namespace: str) -> Finding:
    """Return a finding about the user's rights in Reserver's namespace, by `VERB RESOURCE`."""
    missing = sorted(right for right, is_allowed in allowed.items() if not is_allowed)
    if not missing:
        return Finding("rights", True, f"{', '.join(sorted(allowed))} in {namespace}")
    remedy = f"ask for a RoleBinding to the Role reserver-cli in {namespace}"
    return Finding("rights", False, f"no right to {', '.join(missing)} in {namespace}", remedy)
