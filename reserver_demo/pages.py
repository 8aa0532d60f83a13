"""The pages that the demo shows after its scenario, with commands to try.

Each page is valid after the former pages, with or without README's first reservation, which needs
2 CPUs of worker-3. No line is longer than 78 columns, so that none wraps when it is pasted.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

from reserver_demo.scenario import NAMESPACE, STORE
from reserver_demo.view import Page
from reserver_demo.workdir import create_command

EXAMPLE = Path("examples/global_manager.py")


def pages(folder: Path, address: str = "") -> Iterator[Page]:
    """Yield the pages.

    Args:
        folder: the folder of the demo.
        address: the address of `reserver ui`; empty without one.
    """
    yield Page(
        "another terminal",
        (
            "The scenario is over, and the cluster stays up. Open another terminal. There,",
            "this tells `reserver` and kubectl where the cluster is:",
            f"  . {folder}/env",
            "  reserver top nodes",
        ),
    )
    if address:
        yield Page("a browser", ("Nodes, reservations and their times, live:", f"  {address}"))
    yield from _with_reservations()
    if shutil.which("kubectl"):
        yield from _with_kubectl()
    if EXAMPLE.exists():
        yield Page(
            "from a program",
            (
                "A program reserves over gRPC, sends its pod, and sees it land:",
                f"  python {EXAMPLE} --node worker-2",
            ),
        )
    yield Page(
        "go on",
        (
            "The commands of README.md and docs/ work here, too, on worker-1 to worker-3.",
            "The tour leads you step by step, and checks each of them:",
            "  reserver demo --tour",
        ),
    )


def _with_kubectl() -> Iterator[Page]:
    yield Page(
        "the store",
        (
            "Reservations are keys of a ConfigMap. Change one, break one, and watch:",
            f"  kubectl edit configmap -n {NAMESPACE} {STORE}",
            f"  kubectl get configmap -n {NAMESPACE} {STORE}-status -o yaml",
            f"  kubectl get events -n {NAMESPACE}",
        ),
    )
    yield Page(
        "reservations as objects",
        (
            "Hold half a CPU of worker-2 for web-1, by an object:",
            "  kubectl apply -f $DEMO/seat.json",
            "  kubectl wait rsv/seat --for condition=Backed",
            "  kubectl get rsv",
            "  kubectl explain rsv.spec",
        ),
    )


def _with_reservations() -> Iterator[Page]:
    yield Page(
        "reserve",
        (
            "Hold a CPU for a pod that does not exist yet. The hold appears below at once.",
            "  reserver create web --node worker-2 --owner pod/web-0 -n default --cpu 1",
            "  reserver get",
        ),
    )
    yield Page(
        "a stranger, and the owner",
        (
            "The stranger lands wherever half a CPU is free; web-0 lands on its seat, and the",
            "reservation is over: it is claimed.",
            f"  {create_command('stranger')}",
            f"  {create_command('web-0')}  # on worker-2",
        ),
    )
    yield Page(
        "why does a pod wait?",
        (
            "waiting-pod wants 4 CPUs, which are held on worker-1 for nightly-0.",
            "  reserver explain pod default/waiting-pod",
            "  reserver create typo --node worker-3 --owner pod/a --cpu 64  # refused",
        ),
    )
