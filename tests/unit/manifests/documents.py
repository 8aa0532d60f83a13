"""The documents of the manifests, and the containers and flags in them."""

from pathlib import Path
from typing import Any

import typer
import yaml

from reserver.cli.main import app

MANIFESTS = Path(__file__).parents[3] / "scheduler-config"


def documents(*names: str) -> list[dict[str, Any]]:
    return [each for name in names for each in yaml.safe_load_all((MANIFESTS / name).read_text())]


def reserver_of(name: str) -> dict[str, Any]:
    """Return the container of Reserver in a Deployment."""
    (deployment,) = documents(f"{name}/deployment.yaml")
    spec = deployment["spec"]["template"]["spec"]
    containers = spec["containers"] + spec.get("initContainers", [])
    (found,) = [each for each in containers if each["name"] == "reserver"]
    return dict(found)


def flags(container: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters that Reserver parses from its arguments."""
    command: Any = typer.main.get_command(app)
    program, *subcommand = container["command"]
    assert program == "reserver"
    serve = command.get_command(None, *subcommand).loaded()
    context = serve.make_context("serve", list(container["args"]))
    return dict(context.params)


REBALANCE = {
    # Kind of manifest: the path of its pod template.
    "job": ("spec", "template"),
    "cronjob": ("spec", "jobTemplate", "spec", "template"),
    "deployment": ("spec", "template"),
}


def rebalancing_pod(name: str) -> dict[str, Any]:
    """Return the template of the pods that run `reserver rebalance run`."""
    (found,) = documents(f"rebalance/{name}/{name}.yaml")
    for step in REBALANCE[name]:
        found = found[step]
    return found
