"""Each struct belongs to a reader with a bound, or to a trusted writer.

The bound is on the bytes that a reader takes, and so on the product of all lists, maps and texts
in them.
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any

import msgspec

import reserver
from tests.integration.readers.readers import FILLER, READERS

ELSEWHERE: dict[str, str] = {
    "cli.": "a command of whoever calls it",
    "k8s.serving_pod": "a command of whoever calls it: the pods of Reserver itself",
    "process.leadership.": "the API server: names of pods in Reserver's own namespace",
    "settings.configuration.": "a cluster administrator, by strict_yaml.MOST_BYTES",
    "rebalance.": "a process of its own (docs/adr/0066); a policy by strict_yaml.MOST_BYTES",
    "moves.drain.": "the command `drain`",
    "patches.replacement.": "the command `move`",
    "extender.protocol.Extender": "kube-scheduler; the pod that it sends is one of READERS",
    "extender.protocol._": "kube-scheduler; the pod that it sends is one of READERS",
    "extender.protocol.MetaVictims": "kube-scheduler",
    "k8s.lease.": "Reserver, in its own namespace",
    "k8s.objects.move_windows.": "a cluster administrator, by strict_yaml.MOST_BYTES",
    "k8s.objects.reviews.": "the API server and its authenticator",
    "k8s.objects.objects.Condition": "Reserver, in a status",
    "k8s.watch.collection.": "the API server: whether one CRD or namespace is being deleted",
    "k8s.objects.objects.ObjectList": "the API server: pages have PAGE_BYTES, items stay JSON",
    "k8s.objects.objects.ReadEvent": "the API server, by the bound of what the event is about",
    "k8s.objects.objects.Status": "the API server",
    "k8s.objects.objects.WatchEvent": "the API server: items stay JSON",
    "k8s.objects.objects.Labelled": "managers and Reserver: ConfigMaps, in its own namespace",
    "stores.recovery.": "managers and Reserver: what READERS have, of before",
    "moves.workloads.": "the API server: its discovery, by workloads._MOST_BYTES, and one workload",
    "stores.codec.demands.": "a pod or template that READERS have bounded",
    "moves.podmove.": "READERS; MoveList by the command that asks for it",
    "moves.podmove_status.": "Reserver, in a status",
    "patches.status_codec.": "Reserver, in a status",
    "webhook.certificate_secret.": "Reserver, and who may write webhook configurations",
    "stores.configmap.list_codec.": "managers, by ITEM_BYTES",
    "stores.codec.owner_codec.": "the reader of a spec, by the Limits of its place",
    "stores.codec.placement_codec.": "the reader of a spec, by the Limits of its place",
    "k8s.objects.schedules.": "the reader of a spec, by the Limits of its place",
    "provisioning.codec._Class": "who writes READERS' requests: one name",
    "stores.codec.spec_codec.EntrySpec": "managers, by HOME.spec_bytes",
    "stores.configmap.status_codec.": "Reserver, in companions and its archive",
    "stores.configmap.companion_codec.": "Reserver, in companions and its archive",
    "stores.object.status_codec.": "Reserver, in companions and its archive",
    "stores.archive.": "Reserver, in companions and its archive",
}
"""The trusted writer or the bound of each struct without a reader, by prefix of its name."""


def structs(kind: type[Any]) -> set[type[Any]]:
    below = {each for one in kind.__subclasses__() for each in structs(one)}
    return {kind} | below


def all_structs() -> set[type[Any]]:
    """Return the structs of all modules."""
    for module in pkgutil.walk_packages(reserver.__path__, "reserver."):
        if module.name != "reserver.__main__":
            importlib.import_module(module.name)
    return structs(msgspec.Struct)


def test_every_struct_belongs_to_a_reader_or_to_somebody_who_is_trusted() -> None:
    """The test above fills new fields of a struct; a new struct has to be listed here."""
    read = {each for reader in READERS.values() for each in FILLER.structs(reader.kind)}
    bases = {base for each in read for base in each.__mro__}
    unknown = set()
    for each in all_structs() - bases:
        name = f"{each.__module__}.{each.__qualname__}".removeprefix("reserver.")
        is_ours = each.__module__.startswith("reserver.")
        is_base = not msgspec.structs.fields(each)
        if is_ours and not is_base and not name.startswith(tuple(ELSEWHERE)):
            unknown.add(name)
    assert not unknown


def test_every_part_that_stays_json_is_read_as_something_with_a_bound() -> None:
    unread = {
        (name, part)
        for name, reader in READERS.items()
        for part in FILLER.unread(reader.kind)
        if not part.endswith("[]")  # Items that are counted and not read.
    }
    assert not unread
