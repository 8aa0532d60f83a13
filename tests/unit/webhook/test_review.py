"""Admission reviews and their answers."""

import base64
import json
from typing import Any

import pytest

from reserver.errors import InvalidInput
from reserver.k8s.objects.objects import decode, encode
from reserver.k8s.objects.pod_annotations import MARKS_ANNOTATION
from reserver.patches.book import Mark, NewPod, PatchVerdict, read_marks
from reserver.patches.model import Scheduling
from reserver.webhook import review
from reserver.webhook.review import CreatedPod

MARK = Mark("fast", "uid", 3)
MARKS = '["fast/uid/3"]'


def pod(annotations: dict[str, str] | None = None, **spec: Any) -> CreatedPod:
    metadata: dict[str, Any] = {"generateName": "web-", "labels": {"app": "web"}}
    if annotations is not None:
        metadata["annotations"] = annotations
    return decode(CreatedPod, encode({"metadata": metadata, "spec": {"containers": [], **spec}}))


def test_a_review_is_read() -> None:
    request = {"uid": "u", "namespace": "shop", "dryRun": True, "object": {"a": 1}, "options": {}}
    found = review.read_request(encode({"kind": "AdmissionReview", "request": request}))
    assert (found.uid, found.namespace, found.dry_run) == ("u", "shop", True)
    assert json.loads(bytes(found.object)) == {"a": 1}


@pytest.mark.parametrize("body", [b"", b"{}", b'{"request": {}}', b"[]", b'{"request": 7}'])
def test_what_is_no_review_is_refused(body: bytes) -> None:
    with pytest.raises(InvalidInput):
        review.read_request(body)


def test_a_pod_is_read_with_what_patches_look_at() -> None:
    created = pod({MARKS_ANNOTATION: MARKS}, nodeSelector={"a": "b"}, tolerations=[{"key": "c"}])
    assert created.value("shop") == NewPod(
        namespace="shop",
        name="web-",
        labels={"app": "web"},
        scheduling=Scheduling(node_selector={"a": "b"}, tolerations=({"key": "c"},)),
        marks=(MARK,),
    )


@pytest.mark.parametrize(
    "text", [None, "", "x", "7", '["a"]', '["a/b/c"]', '["a/b/-1"]', '["a/b/1234567"]', "[" * 9999]
)
def test_marks_that_reserver_did_not_write_are_none(text: str | None) -> None:
    assert read_marks(text) == ()


@pytest.mark.parametrize(
    ("annotations", "marks", "operations"),
    [
        (None, (), []),
        ({}, (), []),
        ({MARKS_ANNOTATION: MARKS}, (MARK,), []),
        (None, (MARK,), [("add", "/metadata/annotations", {MARKS_ANNOTATION: MARKS})]),
        ({"a": "b"}, (MARK,), [("add", "/metadata/annotations/reserver.io~1sched-patches", MARKS)]),
        (
            {MARKS_ANNOTATION: "[]"},
            (),
            [("remove", "/metadata/annotations/reserver.io~1sched-patches", None)],
        ),
    ],
)
def test_a_pod_gets_the_marks_of_its_patches_and_no_others(
    annotations: dict[str, str] | None, marks: tuple[Mark, ...], operations: list[Any]
) -> None:
    created = pod(annotations)
    before = created.value("shop")
    found = review.json_patch(
        created, before, PatchVerdict(scheduling=before.scheduling, marks=marks)
    )
    assert [(each["op"], each["path"], each.get("value")) for each in found] == operations


def test_only_what_changes_is_patched() -> None:
    created = pod(nodeSelector={"a": "b"}, affinity={"podAffinity": {}})
    before = created.value("shop")
    after = Scheduling(
        node_selector={"a": "b"}, affinity=before.scheduling.affinity, tolerations=({"key": "c"},)
    )
    found = review.json_patch(created, before, PatchVerdict(scheduling=after))
    assert found == [{"op": "add", "path": "/spec/tolerations", "value": ({"key": "c"},)}]


def test_an_answer_allows_with_its_patch_and_warnings() -> None:
    patch = [{"op": "add", "path": "/spec/nodeSelector", "value": {"a": "b"}}]
    found = json.loads(review.answer("u", ["a\nb" + "c" * 999], patch))
    response = found["response"]
    assert (found["kind"], response["uid"], response["allowed"]) == ("AdmissionReview", "u", True)
    assert json.loads(base64.b64decode(response["patch"])) == patch
    assert response["patchType"] == "JSONPatch"
    assert len(response["warnings"][0]) <= 256
    assert "\n" not in response["warnings"][0]


def test_a_refusal_says_why() -> None:
    response = json.loads(review.refusal("u", "there is no room"))["response"]
    assert (response["allowed"], response["status"]["code"]) == (False, 403)
    assert response["status"]["message"] == "there is no room"


def test_however_long_a_name_is_its_answer_is_short() -> None:
    """Escaping a message that repeats a name of 4 MB took a second of the event loop."""
    name = "\x07" * 2**20
    refused = json.loads(review.refusal("u", f"pod {name}"))["response"]["status"]["message"]
    assert len(refused) <= 4 * 4_096
    (warning,) = json.loads(review.answer("u", [name]))["response"]["warnings"]
    assert len(warning) <= 256


@pytest.mark.parametrize("name", ["\x07", "x"])
def test_only_so_much_of_a_message_is_escaped(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    def escaped(text: str) -> str:
        seen.append(len(text))
        return text

    monkeypatch.setattr(review, "printable", escaped)
    review.answer("u", [name * 2**20])
    review.refusal("u", name * 2**20)
    assert max(seen) <= 4_096
