"""`reserver ui`: a page on loopback that shows reservations, their nodes, owners and times."""

from __future__ import annotations

import asyncio
import json
import secrets
import time
import webbrowser
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urljoin

import typer

from reserver.cli import completion, doctor, failure, formatting, interrupt, podmoves, report
from reserver.cli.connection import Session, connected
from reserver.cli.failure import WrongUsage
from reserver.cli.plan_view import document as plan_document
from reserver.cli.podmoves import KubeClient
from reserver.cli.rebalance_plan import PlanFlags, planned
from reserver.cli.target import Target
from reserver.cli.top import quota_document
from reserver.client import CallFailed, ReservationInfo
from reserver.errors import ApiError, ConfigurationError, InvalidInput, ReserverError
from reserver.k8s.objects.objects import ObjectList, decode
from reserver.maintenance import codec
from reserver.maintenance.model import Window
from reserver.settings.flags import LAST_PORT, flag
from reserver.ui import server
from reserver.ui.documents import Document, ReservationWords
from reserver.ui.sources import Sources

if TYPE_CHECKING:
    from reserver.ui.server import Query, View

_TEAMS_BACK = timedelta(days=7)
_METRICS = (
    "leader_election_master_status",
    "reserver_certificate_expiry",
    "reserver_client_requests_total{",
    "reserver_extender_calls_total{",
)
"""The metrics in the view of health."""

_PAGE = 500
"""Nodes listed with one call, for their labels."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UiFlags:
    """The flags of `ui`."""

    port: int = flag("Port on 127.0.0.1; 0 for any.", default=0, most=LAST_PORT)
    browser: bool = flag("Open the page in your browser.", default=True)
    policy_config_file: str = flag(
        "Policy that the view of plans offers.",
        default="",
        metavar="FILE",
        complete=completion.files,
    )


def ui(
    target: Target,
    flags: UiFlags,
    view: Annotated[
        str, typer.Argument(metavar="[VIEW]", help="View to open, as the page shows it.")
    ] = "timeline",
) -> None:
    """Show nodes, reservations and their times on a page in your browser.

    The command serves the page on 127.0.0.1, with your rights, until Ctrl-C. The page changes
    nothing: it shows the commands that would. Its address is a secret of this process.

    Exit status: 0 ended; 1 refused; 2 wrong usage; 3 Reserver cannot be reached.

    Examples:
        reserver ui
        reserver ui --no-browser --port 8090
        reserver ui pod/shop/web-0
    """
    interrupt.run(_serve(target, view, flags))


async def _serve(target: Target, view: str, flags: UiFlags) -> None:
    ticket, view = secrets.token_urlsafe(24), view.lstrip("#/")
    async with serving(target, flags.port, flags.policy_config_file, ticket) as address:
        typer.echo(f"The page is at {address}#/{view}")
        if flags.browser:
            await asyncio.to_thread(webbrowser.open, urljoin(address, f"/{ticket}#/{view}"))
        await asyncio.Event().wait()


@asynccontextmanager
async def serving(
    target: Target, port: int = 0, policy: str = "", ticket: str = ""
) -> AsyncIterator[str]:
    """Serve the page in a block, which gets its address; a ticket leads there once.

    Raises:
        Failed: Reserver cannot be reached.
        ConfigurationError: the port is taken.
    """
    async with connected(target) as session, _api(target) as api:
        async for _ in session.client.list():  # A watch waits for ever for nobody.
            break
        stream = server.Stream()
        views = _Views(session, api, target, policy)
        sources = Sources(
            board=stream.board,
            client=session.client,
            words=_words,
            labels=views.labels,
            moves=views.moves,
            windows=views.windows,
            offset=views.offset,
            explained=_explained,
        )
        filling = asyncio.create_task(sources.fill())
        try:
            async with server.serving(stream, views.by_name(), _explained, port, ticket) as address:
                yield address
        finally:
            filling.cancel()
            await asyncio.wait({filling})


@asynccontextmanager
async def _api(target: Target) -> AsyncIterator[KubeClient | ConfigurationError]:
    """One client of the API server for as long as the page is served, or why there is none."""
    from reserver.k8s import credentials
    from reserver.k8s.client import ApiClient

    try:
        access = await credentials.load(target.kubeconfig, target.context)
    except ConfigurationError as exc:
        if not target.address:
            raise
        yield exc
        return
    async with ApiClient(access) as client:
        yield client


def _explained(error: ReserverError) -> str:
    if isinstance(error, CallFailed) and failure.is_without_answer(error):
        return f"Reserver does not answer: {failure.cause(error)}"
    return failure.of(error).message


def _words(info: ReservationInfo) -> ReservationWords:
    """Return a reservation in the words of `reserver get` and `describe`."""
    schedule = info.spec.schedule
    every = formatting.every(schedule) if schedule else ""
    return ReservationWords(formatting.phase(info).text, formatting.owners(info), every)


@dataclass(frozen=True, slots=True)
class _Views:
    """The questions of the page, each answered as the command of its name does."""

    session: Session
    api: KubeClient | ConfigurationError
    target: Target
    policy: str

    def by_name(self) -> Mapping[str, View]:
        """Return the views by the name that the page asks for."""
        turn = asyncio.Lock()  # One plan at a time: it takes a core, and memory.

        async def plan(query: Query) -> object:
            async with turn:
                return await self._plan(query)

        return {
            "explain": self._explain,
            "waiting": self._waiting,
            "plan": plan,
            "teams": self._teams,
            "health": self._health,
        }

    def _client(self) -> KubeClient:
        if isinstance(self.api, ConfigurationError):
            raise self.api
        return self.api

    async def labels(self) -> dict[str, Mapping[str, str]]:
        """Return the labels of each node."""
        found: dict[str, Mapping[str, str]] = {}
        query = {"limit": str(_PAGE)}
        while True:
            page = json.loads(await self._client().get("/api/v1/nodes", query))
            for each in page["items"]:
                found[each["metadata"]["name"]] = each["metadata"].get("labels") or {}
            if not (token := page["metadata"].get("continue")):
                return found
            query = {"limit": str(_PAGE), "continue": token}

    async def moves(self) -> list[Document]:
        """Return all PodMoves."""
        return await podmoves.listed(self._client())

    async def windows(self) -> list[tuple[Window, str]]:
        """Return the maintenance windows, each with its progress."""
        return await listed_windows(self._client(), time.time())

    async def offset(self) -> float:
        """Return by how many seconds Reserver's clock is ahead of this machine's."""
        before = time.time()
        dump = json.loads(await self.session.client.capacity.dump())
        middle = (before + time.time()) / 2
        ahead = datetime.fromisoformat(dump["writtenAt"]).timestamp() + 0.5 - middle
        return ahead if abs(ahead) > 1 else 0.0  # Reserver says it in whole seconds.

    async def _explain(self, query: Query) -> object:
        namespace, _, pod = query.get("pod", "").partition("/")
        if not namespace or not pod:
            raise WrongUsage("pod: is not NAMESPACE/NAME; write for example shop/web-0")
        return await self.session.client.capacity.explain(namespace, pod)

    async def _waiting(self, _: Query) -> object:
        dump = json.loads(await self.session.client.capacity.dump())
        return {"count": dump["waitingPods"], "pods": dump["someWaitingPods"]}

    async def _plan(self, query: Query) -> object:
        goal = query.get("goal", "policy" if self.policy else "make-room")
        flags = PlanFlags(
            policy_config_file=self.policy if goal == "policy" else "",
            make_room=goal == "make-room",
            defragment=goal == "defragment",
        )
        flags.check()
        return {
            "goal": goal,
            "policy": self.policy,
            **plan_document(await planned(flags, "", self.target)),
        }

    async def _teams(self, query: Query) -> object:
        client, resource = self.session.client, query.get("resource", "cpu")
        period = await report.fetch(client, resource, "", _TEAMS_BACK)
        quotas = [quota_document(each) async for each in client.capacity.quotas()]
        return {**report.document(period), "quotas": quotas}

    async def _health(self, _: Query) -> object:
        found = await doctor.findings(self.target)
        checks = [each._asdict() for each in found]
        try:
            dump = json.loads(await self.session.client.capacity.dump())
        except ReserverError as exc:
            return {"checks": checks, "problem": _explained(exc)}
        kept = ("versions", "obstacles", "watches", "queues", "nodes", "pods", "reservations")
        metrics = [line for line in dump["metrics"] if line.startswith(_METRICS)]
        return {"checks": checks, "metrics": metrics, **{name: dump[name] for name in kept}}


async def listed_windows(client: KubeClient, now: float) -> list[tuple[Window, str]]:
    """Return the maintenance windows that can be read, each with its progress in words.

    Args:
        now: unix seconds: a recurring window is shown as it is then.

    Raises:
        ApiError: the API server does not show them; one without their CRD has none.
    """
    try:
        answer = decode(ObjectList, await client.get(codec.COLLECTION))
    except ApiError as exc:
        if exc.status == HTTPStatus.NOT_FOUND:
            return []
        raise
    found = []
    for raw in (answer.items or [])[: codec.MOST_WINDOWS]:
        with suppress(InvalidInput):
            item = decode(codec.WindowObject, raw)
            status = item.said()
            found.append((codec.read_object(item).at(now), status.message if status else ""))
    return found
