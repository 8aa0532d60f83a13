"""A finding about the ceiling on all tenants, which an older version does not have."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from reserver.cli.doctor import Finding
from reserver.cli.preflight_files import Id, Object
from reserver.cli.preflight_holds import WrittenSpec
from reserver.cli.preflight_programs import containers
from reserver.cluster import quantity
from reserver.errors import ConfigurationError, InvalidInput
from reserver.reservations.quota import HELD, show_amount, usage
from reserver.settings.configuration import KIND, parse
from reserver.settings.flags import NO_PERCENT, read_percent
from reserver.settings.serve import CEILING

_FLAG = "--tenant-ceiling-cluster="
_VARIABLE = "RESERVER_TENANT_CEILING_CLUSTER"
_BUFFERS = "--capacity-buffers"


def of_ceiling(
    written: Iterable[WrittenSpec],
    nodes: Iterable[Object],
    there: Mapping[Id, Object],
    home: str,
) -> Iterator[Finding]:
    """Yield a finding if tenants hold more than the ceiling of the files.

    Args:
        written: the written reservations.
        nodes: the Node objects.
        there: the files.
        home: Reserver's own namespace, which is no tenant.
    """
    percent = read_percent(_ceiling(there))
    if percent is None:
        return
    reservations = (one for each in written if each.is_object for one in each.entries.reservations)
    tenants = (one for one in reservations if one.ref.namespace != home)
    held = quantity.total(usage(one, one.slots) for one in tenants)
    offered = quantity.total(map(_allocatable, nodes))
    over = [
        f"{HELD}{name}={show_amount(f'{HELD}{name}', held[f'{HELD}{name}'])}"
        for name, amount in sorted(offered.items())
        if held.get(f"{HELD}{name}", 0) * 100 > amount * percent
    ]
    if over:
        said = f"tenants hold more than {percent}% of the nodes' resources: {', '.join(over)}"
        remedy = "they hold on, and no tenant is admitted more: set tenantCeiling.cluster"
        yield Finding("ceiling", False, said, remedy)


def _allocatable(node: Object) -> Mapping[str, int]:
    offered: Mapping[str, Any] = (node.get("status") or {}).get("allocatable") or {}
    return {name: quantity.amount(name, str(text)) for name, text in offered.items()}


def _ceiling(there: Mapping[Id, Object]) -> str:
    """Return the share that the files set, by flag, variable or configuration; else the default."""
    has_buffers = False
    for id_, each in there.items():
        if id_.kind == "ConfigMap":
            values = _configured((each.get("data") or {}).values())
            if found := values.get("tenant_ceiling_cluster"):
                return str(found)
            has_buffers |= bool(values.get("capacity_buffers"))
        for container in containers(each) if id_.kind == "Deployment" else ():
            args = [str(arg) for arg in container.get("args") or ()]
            if given := [arg.removeprefix(_FLAG) for arg in args if arg.startswith(_FLAG)]:
                return given[-1]
            variables = {one.get("name"): one.get("value") for one in container.get("env") or ()}
            if variables.get(_VARIABLE):
                return str(variables[_VARIABLE])
            has_buffers |= _BUFFERS in args
    return NO_PERCENT if has_buffers else CEILING


def _configured(texts: Iterable[Any]) -> Mapping[str, Any]:
    """Return what configuration files among texts say; of others, and of invalid ones, nothing."""
    for text in texts:
        if f"kind: {KIND}" in str(text):
            try:
                return parse(str(text).encode())
            except (ConfigurationError, InvalidInput):
                return {}
    return {}
