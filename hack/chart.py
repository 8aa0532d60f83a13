"""`make cli-reference` has the chart's schema know the flags of `reserver serve`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from reserver.config import Settings
from reserver.flags import Declared, declared

CHART = Path(__file__).parents[1] / "charts/reserver"
SCHEMA = CHART / "values.schema.json"
OWN = frozenset(
    {
        "--bind-address",
        "--capacity-buffers",
        "--extender-client-ca-file",
        "--grpc-address",
        "--health-address",
        "--http-port",
        "--keep-held-nodes",
        "--kubeconfig",
        "--leader-elect",
        "--namespace",
        "--pod-moves",
        "--provisioning-requests",
        "--rebalance-interval",
        "--rebalance-policy",
        "--tls-cert-file",
        "--tls-private-key-file",
        "--webhook-address",
        "--webhook-cert-file",
        "--webhook-private-key-file",
    }
)
"""What the chart gives itself, or what needs a file that it does not mount."""


def schema() -> str:
    """Return the whole schema, its `settings` as the flags are now."""
    whole = json.loads(SCHEMA.read_text())
    flags = [each for each in declared(Settings) if each.name not in OWN]
    whole["properties"]["settings"] = {
        "description": "Further flags of `reserver serve`, by their names.",
        "type": "object",
        "additionalProperties": False,
        "properties": {each.name.removeprefix("--"): _value(each) for each in flags},
    }
    return json.dumps(whole, indent=2, ensure_ascii=False) + "\n"


def _value(flag: Declared) -> dict[str, Any]:
    told: dict[str, Any] = {"description": flag.flag.help}
    if flag.is_repeated:
        return told | {"type": "array", "items": {"type": "string", "minLength": 1}}
    if flag.kind in {bool, int}:
        return told | {"type": {bool: "boolean", int: "integer"}[flag.kind]}
    return told | {"type": "string", "minLength": 1}


def main() -> None:
    """Write the schema."""
    SCHEMA.write_text(schema())


if __name__ == "__main__":
    main()
