"""The cost of a new pod with the most and largest SchedPatches."""

from __future__ import annotations

import json
from typing import Any

import pytest

from reserver.k8s.objects.limits import POD
from reserver.k8s.objects.objects import decode
from reserver.patches import codec
from reserver.patches.book import MOST_PATCHES, Book
from reserver.patches.model import MOST_BYTES
from reserver.webhook import review
from tests.builders import NOW
from tests.cpu import MOST_S, least_cpu_s

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
VALUES = [str(number) for number in range(62)]
Written = dict[str, Any]


def asked(number: int, name: str, values: list[str]) -> list[Written]:
    return [
        {"key": "k", "operator": "In", "values": [*values, f"{name}-{n}"]} for n in range(number)
    ]


def nodes(alternatives: int, requirements: list[Written]) -> Written:
    terms = [{"matchExpressions": requirements}] * alternatives
    return {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}}}


def tolerating(number: int, name: str) -> Written:
    return {"tolerations": [{"key": f"{name}-{n}", "operator": "Exists"} for n in range(number)]}


CASES: dict[str, tuple[Written, Written]] = {
    "alternatives of short requirements": (
        nodes(16, asked(1, "patch", [])),
        nodes(4, asked(8, "pod", [])),
    ),
    "many requirements of many values": (
        nodes(1, asked(16, "patch", VALUES)),
        nodes(1, asked(20, "pod", VALUES)),
    ),
    "what conflicts last": (nodes(1, asked(16, "patch", VALUES)), nodes(63, asked(1, "pod", []))),
    "requirements to compare": (
        nodes(1, asked(16, "patch", [])),
        nodes(1, asked(150, "pod", [])),
    ),
    "tolerations": (tolerating(32, "patch"), tolerating(90, "pod")),
    "labels of nodes": (
        {"nodeSelector": {f"patch-{n}": "v" for n in range(32)}},
        {"nodeSelector": {f"pod-{n}": "v" for n in range(800)}},
    ),
    "a pod of megabytes": (
        nodes(1, asked(16, "patch", VALUES)),
        nodes(64, asked(30, "pod", VALUES)),
    ),
}


def book(injected: Written) -> Book:
    found = Book("one", lambda _: None)
    labels = {f"label-{n}": "v" for n in range(30)}
    for number in range(MOST_PATCHES):
        spec = {"selector": {"matchLabels": labels}, "maxCount": 1_000, "ttl": 0, **injected}
        text = json.dumps(spec).replace("patch-", f"patch-{number}-")
        metadata = {"name": f"p{number:02}", "namespace": "shop", "uid": f"u{number}"}
        raw = f'{{"metadata": {json.dumps(metadata)}, "spec": {text}}}'
        slots = found.put(codec.read_object(decode(codec.PatchObject, raw.encode()))).slots
        slots.recorded(slots.wanted(0.0, is_over=False), 1, 0.0, inherits=False)
    return found


@pytest.mark.parametrize("is_dry_run", [True, False])
@pytest.mark.parametrize("what", CASES)
def test_a_pod_beside_as_many_patches_as_count_takes_little(what: str, *, is_dry_run: bool) -> None:
    """64 patches of 32 KiB and a dry run of 2.6 MB once held the event loop for 5.3 s of CPU."""
    injected, spec = CASES[what]
    patches, sizes = book(injected), []

    def body(number: int) -> bytes:
        labels = {f"label-{n}": "v" for n in range(30)} | {"number": str(number)}
        return json.dumps({"metadata": {"labels": labels}, "spec": spec}).encode()

    def answer(raw: bytes) -> None:
        created = decode(review.CreatedPod, raw)
        pod = created.value("shop")
        verdict = patches.decide(pod, NOW, is_dry_run=is_dry_run)
        operations = review.json_patch(created, pod, verdict)
        sizes.append(len(review.answer("u", patch=operations)))

    assert least_cpu_s(body, answer) < MOST_S
    assert max(sizes, default=0) < 3 * MOST_BYTES
    assert bool(sizes) is (len(json.dumps(spec)) < POD.part_bytes)
