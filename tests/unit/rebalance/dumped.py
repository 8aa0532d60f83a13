"""Dumps, and the clusters that are read from them."""

import json
from typing import Any


def written_pod(name: str = "p", /, **parts: Any) -> dict[str, Any]:
    return {
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "shop",
            "uid": f"uid-{name}",
            "creationTimestamp": "2030-01-31T10:00:00Z",
            **parts.get("metadata", {}),
        },
        "spec": {"nodeName": "a", "containers": [{"name": "c"}], **parts.get("spec", {})},
        "status": {"phase": "Running", **parts.get("status", {})},
    }


def listing(*objects: Any) -> bytes:
    return json.dumps({"kind": "List", "items": objects}).encode()
