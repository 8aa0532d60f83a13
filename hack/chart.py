"""`make cli-reference` writes the flags of Reserver into the chart's schema, and its README."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from reserver.rebalance.settings import RebalanceSettings
from reserver.settings.flags import Declared, declared
from reserver.settings.serve import Settings

CHART = Path(__file__).parents[1] / "charts/reserver"
SCHEMA = CHART / "values.schema.json"
README = CHART / "README.md"
CONFIGURATION = CHART.parents[1] / "reserver/settings/configuration.schema.json"
_HEADING = "## Values\n"
_TYPES = {bool: "boolean", int: "integer", float: "number"}

OWN = frozenset(
    {
        "--bind-address",
        "--capacity-buffers",
        "--config",
        "--extender-client-ca-file",
        "--grpc-address",
        "--health-address",
        "--http-port",
        "--keep-held-nodes",
        "--kubeconfig",
        "--leader-elect",
        "--lending",
        "--maintenance-windows",
        "--namespace",
        "--pod-moves",
        "--pod-name",
        "--provisioning-requests",
        "--surge-moves",
        "--tls-cert-file",
        "--tls-private-key-file",
        "--webhook-address",
        "--webhook-cert-file",
        "--webhook-private-key-file",
    }
)
"""Settings that the chart sets itself, or that need a file that it does not mount."""

OWN_OF_ROUNDS = frozenset(
    {
        "--descheduling-interval",
        "--health-address",
        "--leader-elect",
        "--leader-elect-resource-name",
        "--leader-elect-resource-namespace",
        "--policy-config-file",
    }
)
"""The same, of `reserver rebalance run`."""


def schema() -> str:
    """Return the whole schema, its `settings` as the flags are now."""
    whole = json.loads(SCHEMA.read_text())
    serve = _flags("reserver serve", Settings, OWN)
    # templates/check.yaml names the replacement of what was here once.
    whole["properties"]["settings"] = serve | {"patternProperties": {"^rebalance-": {}}}
    fields: dict[str, Any] = json.loads(CONFIGURATION.read_text())["properties"]
    whole["properties"]["configuration"] = {
        "description": "Fields of the ReserverConfiguration (docs/configuration.md).",
        "type": "object",
        "additionalProperties": False,
        "properties": {k: each for k, each in fields.items() if k not in {"apiVersion", "kind"}},
    }
    rounds = _flags("reserver rebalance run", RebalanceSettings, OWN_OF_ROUNDS)
    whole["properties"]["rebalance"]["properties"]["settings"] = rounds
    return json.dumps(whole, indent=2, ensure_ascii=False) + "\n"


def _flags(command: str, settings: type, own: frozenset[str]) -> dict[str, Any]:
    flags = [each for each in declared(settings) if each.name not in own]
    return {
        "description": f"Further flags of `{command}`, by their names.",
        "type": "object",
        "additionalProperties": False,
        "properties": {each.name.removeprefix("--"): _value(each) for each in flags},
    }


def _value(flag: Declared) -> dict[str, Any]:
    told: dict[str, Any] = {"description": flag.flag.help}
    if flag.is_repeated:
        return told | {"type": "array", "items": {"type": "string", "minLength": 1}}
    if flag.flag.read is None and flag.kind in _TYPES:
        return told | {"type": _TYPES[flag.kind]}
    return told | {"type": "string", "minLength": 1}


def leaves(node: dict[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    """Yield each value of a schema by its path; what flags are called is not the chart's."""
    for name, value in node["properties"].items():
        if "properties" in value and "description" not in value:
            yield from leaves(value, (*path, name))
        elif name != "global":
            yield ".".join((*path, name)), value


def defaults() -> dict[str, Any]:
    """Return the values that nobody has to give."""
    found: dict[str, Any] = yaml.safe_load((CHART / "values.yaml").read_text())
    return found


def readme() -> str:
    """Return the chart's page, its table of values as the schema is now."""
    rows = ["| value | default | meaning |", "|---|---|---|"]
    for path, value in leaves(json.loads(SCHEMA.read_text())):
        default: Any = defaults()
        for name in path.split("."):
            default = default[name]
        shown = json.dumps(default, ensure_ascii=False).replace("|", "\\|")
        rows.append(
            f"| `{path}` | `{shown}` | {value['description'].replace('|', chr(92) + '|')} |"
        )
    head, _, _ = README.read_text().partition(_HEADING)
    return "\n".join([head + _HEADING, *rows, ""])


def main() -> None:
    """Write both."""
    SCHEMA.write_text(schema())
    README.write_text(readme())


if __name__ == "__main__":
    main()
