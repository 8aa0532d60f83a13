"""Flags that describe a reservation, turned into the document that a file would contain."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from functools import partial
from typing import Any

from reserver.cli import completion, times
from reserver.cli.failure import WrongUsage
from reserver.cli.owner_flags import OWNER_FORMS, owner, pair
from reserver.errors import InvalidInput
from reserver.k8s.objects.times import in_hours, parse_moment, show_moment
from reserver.reservations.enums import Policy, Strategy
from reserver.settings.flags import Declared, declared, flag
from reserver.stores.codec.lifetime_codec import DEFAULT_TTL_S

_MOMENTS = {"starts_at", "expires_at", "until"}
_DURATIONS = {"ttl", "release_if_idle", "for_", "lead"}
_EXCLUDING = {
    "--node": {"--node-selector", "--strategy", "--refill"},
    "--ttl": {"--expires-at"},
    "--every": {"--ttl", "--expires-at"},
    "--count": {"--until"},
}
_ONCE = {"--until": "--expires-at", "--for": "--ttl"}
_EXAMPLES = {"--resource": "nvidia.com/gpu=1", "--node-selector": "disk=ssd"}


_flag = partial(flag, panel="Reservation")
_time = partial(flag, panel="Time")
_claim = partial(flag, panel="Claims and room")


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecFlags:
    """The flags of `create` for a spec: its fields in docs/reservations.md."""

    node: str | None = _flag(
        "Node to hold room on. Default: Reserver chooses.", complete=completion.nodes
    )
    node_selectors: tuple[str, ...] = _flag(
        "Label that the node has, or each of --nodes.",
        default=(),
        metavar="LABEL=VALUE",
        path="placement.nodeSelector",
    )
    strategy: Strategy | None = _flag(
        "Choose the fullest nodes (pack) or the emptiest. Default: pack.", path="placement.strategy"
    )
    owners: tuple[str, ...] = _flag(
        "Owner: pod/NAME, KIND/NAME or LABEL=VALUE.",
        default=(),
        metavar="OWNER",
        complete=completion.owners,
    )
    cpu: str | None = _flag("CPU of one slot.", metavar="QUANTITY", path="resources.cpu")
    memory: str | None = _flag("Memory of one slot.", metavar="QUANTITY", path="resources.memory")
    resources: tuple[str, ...] = _flag(
        "Other resource of one slot (nvidia.com/gpu=1).", default=(), metavar="NAME=QUANTITY"
    )
    nodes: int | None = _flag(
        "Number of whole nodes to hold, instead of slots; see --node-selector.", path="nodes.count"
    )
    slots: int | None = _flag("Number of slots; each pod claims one. Default: 1.")
    ttl: str | None = _time(
        "Lifetime, such as 30m, 2h or 7d; 0: no expiry. Default: 24h.", metavar="DURATION"
    )
    expires_at: str | None = _time(
        "Expiry: 22:00, 'tomorrow 18:00', +2h, or RFC 3339.", metavar="TIME", path="expiresAt"
    )
    starts_at: str | None = _time(
        "Start, written as --expires-at. Default: now.", metavar="TIME", path="startsAt"
    )
    every: str | None = _time(
        "When the reservation recurs: '22:00 weekdays', '8:30 mon,thu' or cron.",
        metavar="STARTS",
        path="schedule.cron",
    )
    for_: str | None = _time(
        "With --every: length of each occurrence.", metavar="DURATION", path="schedule.duration"
    )
    time_zone: str | None = _time(
        "With --every: zone, such as Europe/Berlin. Default: UTC.",
        metavar="ZONE",
        path="schedule.timeZone",
    )
    until: str | None = _time(
        "With --every: no occurrence starts later.", metavar="TIME", path="schedule.until"
    )
    count: int | None = _time("With --every: number of occurrences.", path="schedule.count")
    lead: str | None = _time(
        "With --every: time before each start at which the hold begins.",
        metavar="DURATION",
        path="schedule.lead",
    )
    suspend: bool | None = _time("With --every: hold nothing for now.", path="schedule.suspend")
    policy: Policy | None = _claim("Owners may land elsewhere (Prefer) or not. Default: Prefer.")
    reusable: bool | None = _claim("Free a slot again when its pod ends.")
    refill: bool | None = _claim("Replace a claimed slot where there is room. Not with --node.")
    refill_up_to: int | None = _claim(
        "Most slots of --refill, claimed and free. Default: 1000.", path="refillUpTo"
    )
    release_if_idle: str | None = _claim(
        "Release the reservation once no pod has had a slot for 1m to 365d.",
        metavar="DURATION",
        path="releaseIfIdle",
    )
    preemptible: bool | None = _claim(
        "Let pods of a higher priority than --priority take the room."
    )
    priority: int | None = _claim("Priority of a preemptible reservation. Default: 0.")
    lend_below: int | None = _claim(
        "Let pods of a lower priority borrow the room until an owner comes.",
        metavar="PRIORITY",
        path="lend.belowPriority",
    )
    retain: bool | None = _claim("Keep the reservation when it is over, until you release it.")
    description: str | None = _flag("Purpose of the reservation.", metavar="TEXT")

    @property
    def are_given(self) -> bool:
        """Whether any was given."""
        return self != SpecFlags()

    def document(self, namespace: str) -> dict[str, Any]:
        """Return the spec, in the form of docs/reservations.md.

        Raises:
            Failed: a flag is malformed.
        """
        if not self.owners:
            raise WrongUsage(f"--owner: is missing; name the pods that may claim it: {OWNER_FORMS}")
        nothing: dict[str, Any] = {"resources": {}} if self.nodes is None else {}
        document = nothing | self.changes(namespace)
        self._check_every(document)
        if self.every and not self.for_:
            raise WrongUsage("--for: is missing; give the length of each occurrence, e.g. 8h")
        if "count" in document.get("schedule", {}):
            document.setdefault("startsAt", show_moment(datetime.now(UTC).timestamp()))
        if "startsAt" in document and not {"ttl", "expiresAt", "schedule"} & document.keys():
            document["expiresAt"] = show_moment(parse_moment(document["startsAt"]) + DEFAULT_TTL_S)
        return document

    def changes(self, namespace: str) -> dict[str, Any]:
        """Return the fields of a spec that flags give, in the form of `document`."""
        self._check_pairs()
        document: dict[str, Any] = {}
        for each in declared(self):
            value = getattr(self, each.field)
            if value == each.default:
                continue
            *parents, name = self._path(each).split(".")
            parent = document
            for step in parents:
                parent = parent.setdefault(step, {})
            if each.field == "owners":
                parent[name] = [owner(text, namespace) for text in value]
            elif each.field == "every":
                parent[name] = times.cron(each.name, value)
            elif each.field in _DURATIONS:
                parent[name] = _in_hours(each.name, value)
            elif each.field in _MOMENTS:
                parent[name] = _moment(each.name, value)
            elif each.is_repeated:
                pairs = dict(pair(each.name, text, _EXAMPLES[each.name]) for text in value)
                parent[name] = parent.get(name, {}) | pairs
            else:
                parent[name] = value.value if isinstance(value, StrEnum) else value
        return document

    def _path(self, flag: Declared) -> str:
        """Return the path of a flag's field; the selector of whole nodes is next to `nodes`."""
        is_theirs = flag.field == "node_selectors" and self.nodes is not None
        return "nodes.selector" if is_theirs else flag.path

    def _check_every(self, document: Mapping[str, Any]) -> None:
        """Refuse flags of a recurring reservation for one that does not recur."""
        if self.every or "schedule" not in document:
            return
        flag = next(
            each.name
            for each in declared(self)
            if each.path.startswith("schedule.") and getattr(self, each.field) != each.default
        )
        once = f"; for one that does not recur, write {_ONCE[flag]}" if flag in _ONCE else ""
        raise WrongUsage(f"{flag}: goes with --every only{once}")

    def _check_pairs(self) -> None:
        """Refuse flags that exclude each other."""
        given = {each.name for each in declared(self) if getattr(self, each.field) != each.default}
        for one, others in _EXCLUDING.items():
            if one in given and (both := given & others):
                raise WrongUsage(f"{min(both)}: excludes {one}; give one of them")


def _moment(flag: str, text: str) -> str:
    """Return a moment in RFC 3339, in UTC."""
    now = datetime.now().astimezone()
    read = times.moment if flag == "--starts-at" else times.future
    found = read(flag, text, now)
    return show_moment(found.timestamp())


def _in_hours(flag: str, text: str) -> str:
    try:
        return in_hours(text)
    except InvalidInput as exc:
        raise WrongUsage(str(exc.under(flag))) from exc
