"""Decoding pods: typed structs beside dicts and the kubernetes package's models."""

import json
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from kubernetes.client import ApiClient

from hack.bench.documents import running_pods
from hack.bench.report import kilobytes, microseconds, progress, table, times
from hack.bench.rounds import side_by_side
from hack.bench.scale import Scale
from reserver.k8s.objects.objects import decode
from reserver.k8s.objects.pods import PodObject

_SLOW_PART = 20
"""The models get a twentieth of the pods: they would take most of the benchmark's time."""


def measure(scale: Scale) -> Iterator[str]:
    """Yield the table of decoding."""
    progress(f"decoding {scale.decoded:,} pods")
    pods = list(running_pods(scale.decoded, scale.nodes))
    few = pods[: max(len(pods) // _SLOW_PART, 1)]
    models = ApiClient()

    def model(raw: bytes) -> object:
        return models.deserialize(raw.decode(), "V1Pod", "application/json")

    ways: dict[str, tuple[Callable[[bytes], object], Sequence[bytes]]] = {
        "msgspec into structs of the fields needed": (partial(decode, PodObject), pods),
        "the same, and on to the values that decisions see": (_value, pods),
        "`json` into dicts": (json.loads, pods),
        "the models of the `kubernetes` package": (model, few),
    }
    taken = side_by_side(
        {name: partial(_decode_all, way, raws) for name, (way, raws) in ways.items()},
        rounds=max(scale.rounds // 2, 1),
        calls=1,
    )
    scaled = {name: timings.per(len(ways[name][1])) for name, timings in taken.items()}
    reserver = scaled["the same, and on to the values that decisions see"]
    rows = [
        (name, microseconds(timings.seconds()), times(timings.ratio_to(reserver)))
        for name, timings in scaled.items()
    ]
    title = f"Decoding a pod of {kilobytes(len(pods[-1]))}: {scale.decoded:,} of them, one by one"
    yield table(title, ("into what", "one pod", "ratio"), rows)


def _value(raw: bytes) -> object:
    return decode(PodObject, raw).value()


def _decode_all(way: Callable[[bytes], object], raws: Sequence[bytes]) -> None:
    for raw in raws:
        way(raw)
