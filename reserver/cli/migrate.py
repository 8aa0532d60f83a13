"""`reserver migrate`: moves reservations from one store to the other while they hold."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from reserver.cli import failure, interrupt
from reserver.errors import ApiError, ConfigurationError, InvalidInput

if TYPE_CHECKING:
    from reserver.k8s.client import ApiClient

_CANNOT = 2


class StoreName(NamedTuple):
    """A store: a ConfigMap, or the Reservations of a namespace, which have no `name`."""

    namespace: str
    name: str = ""

    def __str__(self) -> str:
        """Return the store as flags write it."""
        return f"configmap:{self.namespace}/{self.name}" if self.name else f"crd:{self.namespace}"


def migrate(
    source: Annotated[
        str,
        typer.Option(
            "--from",
            metavar="STORE",
            help="Store to move from: configmap:NAMESPACE/NAME or crd:NAMESPACE.",
        ),
    ],
    destination: Annotated[
        str,
        typer.Option(
            "--to",
            metavar="STORE",
            help="Store to move to: crd:NAMESPACE or configmap:NAMESPACE/NAME.",
        ),
    ],
    kubeconfig: Annotated[
        Path | None,
        typer.Option(
            envvar="RESERVER_KUBECONFIG", help="Kubeconfig file. Default: as for `reserver serve`."
        ),
    ] = None,
    namespace: Annotated[
        str,
        typer.Option(envvar="RESERVER_NAMESPACE", metavar="NAME", help="Reserver's own namespace."),
    ] = "reserver-system",
    timeout: Annotated[
        float,
        typer.Option(min=1, help="Seconds to wait until Reserver acknowledges each reservation."),
    ] = 30.0,
) -> None:
    """Move all reservations from one store to another; all keep holding.

    One store is a ConfigMap, configmap:NAMESPACE/NAME. The other is the Reservation objects of a
    namespace, crd:NAMESPACE. After an error, repeat the command.

    Exit status: 0 all moved; 1 some are not, and the errors say why; 2 wrong usage, or the stores
    cannot be read.

    Examples:
        reserver migrate --from configmap:unicore/reservation --to crd:unicore
    """
    try:
        stores = _stores(source, destination)
        failed = interrupt.run(_migrate(*stores, kubeconfig, namespace, timeout))
    except (ConfigurationError, ApiError, InvalidInput) as exc:
        failure.report(failure.of(exc).message)
        raise typer.Exit(_CANNOT) from exc
    raise typer.Exit(int(failed))


async def _migrate(
    source: StoreName, destination: StoreName, kubeconfig: Path | None, home: str, timeout_s: float
) -> bool:
    """Return whether any reservation was not moved."""
    from reserver.k8s import credentials
    from reserver.k8s.client import ApiClient
    from reserver.stores.migrate import Migration

    failed = found = False
    async with ApiClient(await credentials.load(kubeconfig)) as client:
        await _require(client, "--from", source)
        await _require(client, "--to", destination)
        migration = Migration(client, time.time, home, timeout_s)
        moves = (
            migration.to_objects(source, destination.namespace)
            if source.name
            else migration.to_configmap(source.namespace, destination)
        )
        async for moved in moves:
            found = True
            if moved.problem:
                typer.echo(f"{moved.source} not moved: {moved.problem}", err=True)
                failed = True
            else:
                typer.echo(f"{moved.source} moved to {moved.destination}")
    if not found:
        failure.report(f"{source} has no reservations")
    return failed


async def _require(client: ApiClient, flag: str, store: StoreName) -> None:
    """Refuse a store that is not there.

    Raises:
        ConfigurationError: it is not.
        ApiError: it cannot be looked at.
    """
    from reserver.stores.configmap.entries import STORE_LABEL
    from reserver.stores.object.codec import collection

    configmap = f"/api/v1/namespaces/{store.namespace}/configmaps/{store.name}"
    try:
        if store.name:
            await client.get(configmap)
        else:
            await client.get(collection(store.namespace), {"limit": "1"})
    except ApiError as exc:
        if not exc.is_absent:
            raise
        if store.name:
            label = f"create it with the label {STORE_LABEL}=true"
            known = f"kubectl get configmaps -n {store.namespace} lists those that are"
            problem = f"is not there; {label if flag == '--to' else known}"
        else:
            problem = "the API server has no Reservations; apply scheduler-config/core/crd.yaml"
        raise ConfigurationError(f"{flag}: {store}: {problem}") from exc


def _stores(source: str, destination: str) -> tuple[StoreName, StoreName]:
    stores = _store("--from", source), _store("--to", destination)
    if bool(stores[0].name) == bool(stores[1].name):
        raise ConfigurationError("--to: is of the kind of --from; move to the other kind")
    return stores


def _store(flag: str, text: str) -> StoreName:
    kind, _, rest = text.partition(":")
    namespace, slash, name = rest.partition("/")
    if kind == "configmap" and namespace and name and "/" not in name:
        return StoreName(namespace, name)
    if kind == "crd" and namespace and not slash:
        return StoreName(namespace)
    remedy = "write configmap:NAMESPACE/NAME or crd:NAMESPACE"
    raise ConfigurationError(f"{flag}: {text!r} is not a store; {remedy}")
