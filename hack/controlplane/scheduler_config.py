"""Adapts a KubeSchedulerConfiguration file, such as the shipped one, to one test cluster."""

from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import yaml

from hack.controlplane.build import HERE

PLAIN_SCHEDULER = HERE / "plain-scheduler.yaml"
"""A configuration without an extender."""


def render_scheduler_config(
    path: Path,
    *,
    kubeconfig: Path,
    port: int | None = None,
    scheduler_name: str | None = None,
    qps: float = 5000,
    burst: int = 10000,
) -> str:
    """Return the configuration in `path` with the settings of this cluster.

    Args:
        path: a KubeSchedulerConfiguration in YAML or JSON.
        kubeconfig: kubeconfig of kube-scheduler.
        port: port of the extenders, if not the port in the file.
        scheduler_name: name of the only profile, if not the name in the file.
        qps: requests a second; a benchmark would only measure the default of 50.
        burst: requests that may be sent at once.
    """
    config = yaml.safe_load(path.read_text())
    client = config.setdefault("clientConnection", {})
    client.update({"kubeconfig": str(kubeconfig), "qps": qps, "burst": burst})
    if port is not None:
        for extender in config.get("extenders", []):
            url = urlsplit(extender["urlPrefix"])
            extender["urlPrefix"] = urlunsplit(url._replace(netloc=f"{url.hostname}:{port}"))
    if scheduler_name is not None:
        (profile,) = config["profiles"]
        profile["schedulerName"] = scheduler_name
    return yaml.safe_dump(config, sort_keys=False)
