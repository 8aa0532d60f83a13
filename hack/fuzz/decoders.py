"""Everything that reads what others wrote, each as a function of bytes.

Each returns, or raises InvalidInput for input that is refused as a whole; all else is a fault. What
is refused in part (an entry of a store, an object of a watch) is checked on the way.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import msgspec
import yaml

from hack.descheduler import policies
from hack.fuzz import move_shapes, patching, provisioning, readers, shapes
from hack.fuzz.checks import SEEN, Fault, check_entries, check_refusal, try_to
from reserver.base.pacer import outcome
from reserver.base.quarantine import counts
from reserver.errors import InvalidInput
from reserver.extender.cluster_watches import (
    claim_view,
    class_view,
    namespace_view,
    node_view,
    pod_view,
    volume_view,
)
from reserver.extender.protocol import decode_bind, decode_filter, decode_preempt
from reserver.k8s import lease
from reserver.k8s.objects.nodes import NodeObject
from reserver.k8s.objects.objects import (
    ConfigMapObject,
    ObjectList,
    PartialObject,
    Status,
    WatchEvent,
    decode,
    encode,
    read_event_of,
)
from reserver.k8s.objects.pods import PodObject
from reserver.k8s.objects.storage import ClaimObject, StorageClassObject, VolumeObject
from reserver.k8s.watch.object_view import ObjectView
from reserver.reservations.enums import Phase
from reserver.reservations.reservation import Ref
from reserver.reservations.status import ReservationState as HoldStatus
from reserver.scheduling.state import State
from reserver.stores.configmap import entry_edits
from reserver.stores.configmap import status_codec as status
from reserver.stores.configmap.cache import ConfigMapCache
from reserver.stores.configmap.companion_codec import CompanionObject, Contents, chunks
from reserver.stores.configmap.entries import read_key
from reserver.stores.edits import Edit
from reserver.stores.entries import EntryProblem
from reserver.stores.recovery import PodPast, StorePast
from reserver.stores.stores import store_view

_KEYS = ("web", "worker-1")


@dataclass(frozen=True)
class Decoder:
    """One reader.

    Attributes:
        read: raises nothing but InvalidInput.
        seeds: input that is as it should be.
    """

    read: Callable[[bytes], object]
    seeds: tuple[bytes, ...]

    def documents(self) -> list[Any]:
        """Return the seeds that are JSON, read."""
        return [json.loads(seed) for seed in self.seeds if seed[:1] in {b"{", b"["}]


def read_pod(raw: bytes) -> object:
    """Read a pod."""
    return decode(PodObject, raw).value()


def read_node(raw: bytes) -> object:
    """Read a node."""
    return decode(NodeObject, raw).value()


def read_configmap(raw: bytes) -> object:
    """Read a store, all of its keys."""
    configmap = decode(ConfigMapObject, raw)
    for key, text in (configmap.data or {}).items():
        check_entries(read_key(Ref("shop", "store", key), text, SEEN))
    return configmap


def read_filter(raw: bytes) -> object:
    """Read a Filter call."""
    pod, names = decode_filter(raw)
    if not all(isinstance(name, str) for name in names):
        raise Fault("a name is no text")
    return pod.value()


def read_preempt(raw: bytes) -> object:
    """Read a Preempt call."""
    pod, victims = decode_preempt(raw)
    for each in victims.values():
        encode(each)
        each.uids()
    return pod.value()


def read_lease(raw: bytes) -> object:
    """Read a Lease of another client, and take it over."""
    found = decode(lease.LeaseObject, raw)
    encode(lease.manifest("reserver", "shop", "7", lease.held_by(found, "me", SEEN, 15)))
    encode(lease.manifest("reserver", "shop", "7", lease.released(found, SEEN)))
    return found.duration_s


def read_past(raw: bytes) -> object:
    """Read an event of the past."""
    event = decode(WatchEvent, raw)
    for past in (StorePast("shop"), PodPast()):
        try_to(lambda _, past=past: past.take(event), raw)  # type: ignore[misc]
    return None


def read_list(raw: bytes) -> object:
    """Read a page of a list."""
    page = decode(ObjectList, raw)
    for item in page.items or ():
        try_to(read_pod, bytes(item))
    return page.metadata.continue_


def read_entry(raw: bytes) -> object:
    """Read a key of a store, and edit it as the cleaner does."""
    text = _text(raw)
    for key in _KEYS:
        ref = Ref("shop", "store", key)
        entries = read_key(ref, text, SEEN)
        check_entries(entries)
        told = status.show(entries, lambda _: HoldStatus(Phase.ACTIVE, is_backed=False))
        list(status.newly_unbacked(None, told))
        if text.lstrip().startswith("[") and entries.reservations:
            _check_edit(entry_edits.remove(ref, text, entries.reservations[:1]))
        elif entries.unstamped:
            _check_edit(entry_edits.complete(ref, text, entries.reservations[0], ()))
    return None


def read_companion(raw: bytes) -> object:
    """Read a companion, and write another status over it where there is no room."""
    data = decode(CompanionObject, raw).data or {}
    entry = encode(shapes.ENTRY_STATUS).decode()
    for text in data.values():
        list(status.newly_unbacked(text, entry))
        list(status.newly_unbacked(entry, text))
        list(status.recorded_claims(text))
    for limit in (1_000_000, 100):
        try:
            changes, _ = Contents(dict(data)).changes({"web": entry, "gone": None}, limit)
        except InvalidInput as exc:
            raise Fault(f"one key of a companion costs all others their status: {exc}") from exc
        for chunk in chunks(changes):
            encode(chunk)
    return None


def read_claims(raw: bytes) -> object:
    """Read a pod whose annotation says this of its claims."""
    metadata = {**shapes.METADATA, "annotations": {"reserver.io/claims": _text(raw)}}
    pod = decode(PodObject, json.dumps({"metadata": metadata}).encode()).value()
    if not all(isinstance(claim, str) for claim in pod.claims):
        raise Fault("a claim is no text")
    return pod


def read_watch(raw: bytes) -> object:
    """Take a list of events as each of the watches would: into the state that decisions see."""
    events = decode(list[msgspec.Raw], raw)
    state = State()
    store = ConfigMapCache(state.ledger, lambda: SEEN, _check_problem)
    views: tuple[ObjectView[Any], ...] = (
        pod_view(state),
        node_view(state),
        store_view(store, lambda _: True),
        namespace_view(state.snapshot),
        claim_view(state.snapshot.storage),
        volume_view(state.snapshot.storage),
        class_view(state.snapshot.storage),
    )
    for event in events:
        try_to(lambda line: _take(line, views), bytes(event))
        state.ledger.advance(SEEN)
    return state


def _take(line: bytes, views: Iterable[ObjectView[Any]]) -> object:
    """Take one line of a watch (`kube.reflector`)."""
    event = decode(WatchEvent, line)
    if event.type == "ERROR":
        return decode(Status, event.object)
    for view in views:
        shown = read_event_of(view.events, line)
        if event.type == "DELETED":
            outcome(view.deleted(shown.object))
        elif event.type != "BOOKMARK":
            outcome(view.changed(shown.object))
    if counts:
        raise AssertionError(f"passed over because of a fault: {dict(counts)}")
    return decode(PartialObject, event.object).metadata.resource_version


def _check_problem(_: object, problem: EntryProblem) -> None:
    check_refusal(problem.error)


def _check_edit(edit: Edit | None) -> None:
    if edit is not None:
        encode(edit.patch())


def _text(raw: bytes) -> str:
    """Return bytes as they can come out of an object: the API server's strings are UTF-8."""
    return raw.decode(errors="replace")


def _json(*documents: object) -> tuple[bytes, ...]:
    return tuple(json.dumps(document).encode() for document in documents)


_LISTS = ([shapes.SHORT_ITEM], [shapes.LONG_ITEM], [shapes.SHORT_ITEM, shapes.LONG_ITEM, 1])
_ENTRIES = (
    *_json(shapes.SPEC, shapes.PLACED, *_LISTS),
    yaml.safe_dump(shapes.SPEC).encode(),
    b"owners: [{pod: {name: web-0}}]\nnode: worker-1\nresources: {cpu: 2}\nttl: 90m # a while\n",
)
_STORE = {
    "metadata": shapes.METADATA,
    "data": {"web": json.dumps(shapes.SPEC), "worker-1": json.dumps(_LISTS[2])},
}
_EVENTS = [
    {"type": kind, "object": each}
    for kind in ("ADDED", "MODIFIED", "DELETED", "BOOKMARK")
    for each in (shapes.POD, shapes.NODE, _STORE, shapes.CLAIM, shapes.VOLUME, shapes.CLASS)
]
_ERROR = {"type": "ERROR", "object": shapes.FAILURE}

DECODERS = {
    "pod": Decoder(read_pod, _json(shapes.POD)),
    "node": Decoder(read_node, _json(shapes.NODE)),
    "configmap": Decoder(read_configmap, _json(shapes.CONFIGMAP, _STORE)),
    "filter": Decoder(read_filter, _json(shapes.FILTER)),
    "claim": Decoder(lambda raw: decode(ClaimObject, raw).value(), _json(shapes.CLAIM)),
    "volume": Decoder(lambda raw: decode(VolumeObject, raw).value(), _json(shapes.VOLUME)),
    "class": Decoder(lambda raw: decode(StorageClassObject, raw).value(), _json(shapes.CLASS)),
    "preempt": Decoder(read_preempt, _json(shapes.PREEMPT)),
    "lease": Decoder(read_lease, _json(shapes.LEASE)),
    "bind": Decoder(decode_bind, _json(shapes.BIND)),
    "watch": Decoder(read_watch, _json(_EVENTS, [shapes.EVENT], [_ERROR])),
    "past": Decoder(read_past, _json(*_EVENTS)),
    "list": Decoder(read_list, _json(shapes.LIST)),
    "status": Decoder(lambda raw: decode(Status, raw), _json(shapes.FAILURE)),
    "entry": Decoder(read_entry, _ENTRIES),
    "companion": Decoder(read_companion, _json(shapes.COMPANION)),
    "reservation": Decoder(readers.read_reservation, _json(*shapes.RESERVATIONS)),
    "quota": Decoder(
        readers.read_quota,
        (*_json(shapes.QUOTA), b"reservations=10,held.cpu=8,held.*=0,maxTTL=24h", b"none"),
    ),
    "policy": Decoder(
        readers.read_policy,
        (
            *_json(*(policies.policy(random.Random(seed)) for seed in range(16))),  # noqa: S311
            *(policies.file(random.Random(seed)).encode() for seed in range(8)),  # noqa: S311
        ),
    ),
    "pod-move": Decoder(readers.read_move, _json(*move_shapes.MOVES)),
    "sched-patch": Decoder(patching.read_patch, _json(patching.PATCH)),
    "provisioning": Decoder(provisioning.read_request, _json(provisioning.REQUEST)),
    "admission": Decoder(patching.read_admission, _json(patching.ADMISSION)),
    "demands": Decoder(readers.read_demands, _json(shapes.POD)),
    "review": Decoder(readers.read_review, _json(shapes.REVIEW)),
    "question": Decoder(
        readers.read_question,
        (readers.question(*shapes.QUESTION), *_json({"reservations": shapes.QUESTION})),
    ),
    "move": Decoder(readers.read_moved, _ENTRIES),
    "claims": Decoder(read_claims, _json(["shop/store/web/0123456789abcdef"], [])),
}
