"""A global resource manager that reserves before it sends.

It has a pod for one of several clusters. It asks the cluster to hold the room first; only when the
hold is in force and backed does it create the pod, which then lands on its seat whatever else is
scheduled in the same moment. If anything goes wrong on the way the hold is released.

Run it against `reserver demo`, which says how to set RESERVER_ADDRESS and KUBECONFIG:

    python examples/global_manager.py --node worker-2
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from datetime import timedelta

from kubernetes import client as kubernetes
from kubernetes import config
from urllib3.exceptions import HTTPError

from reserver.client import (
    CallFailed,
    Change,
    ChangeKind,
    Client,
    Phase,
    PodOwner,
    Selection,
    Spec,
)


async def send(arguments: argparse.Namespace) -> int:
    """Reserve, send, and see the pod land; return an exit status."""
    owner = PodOwner(namespace=arguments.namespace, name=arguments.pod)
    spec = Spec(
        owners=(owner,),
        node=arguments.node,
        resources={"cpu": arguments.cpu},
        ttl=timedelta(minutes=5),  # So long the hold lives if this process does not.
    )
    async with Client(arguments.address) as client:
        try:
            async with client.hold(f"send-{arguments.pod}", spec) as reservation:
                if not reservation.is_backed:
                    print(f"no room: {reservation.message}")  # The next cluster, then.
                    return 1
                print(f"{arguments.cpu} CPU held on {arguments.node} for {owner}")
                if not arguments.dry_run:
                    changes = client.watch(Selection(owner=owner))
                    await anext(changes)  # It watches; nothing is missed from here on.
                    await asyncio.to_thread(create_pod, arguments)
                    await landed(changes)
                    print(f"{owner} has landed")
        except kubernetes.ApiException as exc:
            print(f"not sent: {said(exc)}", file=sys.stderr)
            return 1
        except (CallFailed, config.ConfigException, HTTPError) as exc:
            print(f"not sent: {exc}", file=sys.stderr)
            return 1
    return 0


def said(error: kubernetes.ApiException) -> str:
    """Return what the API server says, without the headers of its answer."""
    try:
        return str(json.loads(error.body)["message"])
    except (TypeError, ValueError, KeyError):
        return f"{error.status} {error.reason}"


async def landed(changes: AsyncIterator[Change]) -> None:
    """Return once the reservation is claimed: then the pod is bound."""
    async with asyncio.timeout(60):
        async for change in changes:
            if change.kind is ChangeKind.DELETED or change.reservation.phase is Phase.CLAIMED:
                return


def create_pod(arguments: argparse.Namespace) -> None:
    """Create the pod in the cluster that now has room for it."""
    api = kubernetes.CoreV1Api(config.new_client_from_config(arguments.kubeconfig))
    resources = {"requests": {"cpu": arguments.cpu}}
    container = {"name": "main", "image": "registry.k8s.io/pause", "resources": resources}
    spec = {"schedulerName": arguments.scheduler, "containers": [container]}
    api.create_namespaced_pod(
        arguments.namespace, {"metadata": {"name": arguments.pod}, "spec": spec}
    )


def main() -> int:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    address = os.environ.get("RESERVER_ADDRESS", "127.0.0.1:9443")
    parser.add_argument("--address", default=address, help="of reserver's gRPC API")
    parser.add_argument("--kubeconfig", help="of the cluster that the pod is for")
    parser.add_argument("--scheduler", default="default-scheduler", help="the pod's schedulerName")
    parser.add_argument("--node", required=True, help="where the room is to be held")
    parser.add_argument("--namespace", default="default", help="of the pod")
    parser.add_argument("--pod", default="sent-0", help="name of the pod")
    parser.add_argument("--cpu", default="1", help="what the pod requests")
    parser.add_argument("--dry-run", action="store_true", help="hold and release, send nothing")
    return asyncio.run(send(parser.parse_args()))


if __name__ == "__main__":
    sys.exit(main())
