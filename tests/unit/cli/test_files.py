"""The content of files: documents, reservations, and their errors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from reserver.cli import manifests, serialization
from reserver.cli.failure import Failed
from reserver.cli.manifests import read_manifests
from reserver.client import Claim, Phase, ReservationInfo
from tests.builders import NOW
from tests.unit.cli.written import NAMED, OBJECT, SPEC


def places(tmp_path: Path, text: str) -> list[str]:
    (tmp_path / "f").write_text(text)
    return [
        each.where.removeprefix(f"{tmp_path}/") for each in manifests.read_files([f"{tmp_path}/f"])
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (NAMED, ["f"]),
        (f"# a comment\n---\n{NAMED}---\n{OBJECT}\n---\n# nothing\n", ["f:1", "f:2"]),
        (f"%YAML 1.2\n---\n{NAMED}", ["f:1", "f:2"]),
        ('[{"name": "a"}, {"name": "b"}]', ["f[0]", "f[1]"]),
        ('{"reservations": [{"name": "a"}]}', ["f[0]"]),
        ('{"kind": "List", "items": [{"name": "a"}, {}]}', ["f[0]", "f[1]"]),
        ("\ufeffname: a\nspec: {}\n", ["f"]),
    ],
)
def test_documents_are_told_apart_by_their_place(
    tmp_path: Path, text: str, expected: list[str]
) -> None:
    assert places(tmp_path, text) == expected


def test_a_text_at_the_end_of_a_document_keeps_its_last_newline(tmp_path: Path) -> None:
    file = tmp_path / "maps.yaml"
    file.write_text("data:\n  a: |\n    x\n    y\n---\ndata:\n  b: |\n    z\n")
    found = manifests.read_files([str(file)])
    assert [each.value["data"] for each in found] == [{"a": "x\ny\n"}, {"b": "z\n"}]


@pytest.mark.parametrize("text", ["", "# nothing\n", "---\n---\n", "\n \n"])
def test_a_file_without_a_document_is_an_error(tmp_path: Path, text: str) -> None:
    with pytest.raises(Failed, match="has no document"):
        places(tmp_path, text)


def test_a_folder_stands_for_its_files(tmp_path: Path) -> None:
    (tmp_path / "b.yaml").write_text(NAMED)
    (tmp_path / "a.json").write_text('{"name": "x", "spec": {}}')
    (tmp_path / "notes.txt").write_text("none of ours")
    found = manifests.read_files([str(tmp_path)])
    assert [Path(each.where).name for each in found] == ["a.json", "b.yaml"]


def test_a_file_that_is_not_text_or_not_there_is_named(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(Failed, match="is not UTF-8"):
        manifests.read_files([str(tmp_path / "f")])
    with pytest.raises(Failed, match="ghost cannot be read: No such file"):
        manifests.read_files([str(tmp_path / "ghost")])


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("just words", "'just words' is not a reservation"),
        ("- 1", "is not a reservation"),
        (SPEC, "a spec alone has no name"),
        (NAMED.replace("b", "B_1", 1), "name: 'B_1' is not a reservation's name"),
        (OBJECT.replace("name: a,", "name: A_1,"), "metadata.name: 'A_1' is not a reservation's"),
        (OBJECT.replace("space: shop}", "space: S.p}"), "metadata.namespace: 'S.p' is not a name"),
        ("name: 5\nspec: {}", "name: 5 is not a name"),
        ("spec: {}", "name: is missing"),
        ("name: a\nspec: {}\nspecs: {}", "specs: is not a field beside spec"),
        ("apiVersion: reserver.io/v1\nkind: Reservation", "kind: reserver.io/v1 Reservation is no"),
        ("apiVersion: v1\nkind: Pod", "kind: v1 Pod is not a reservation"),
        (OBJECT.replace("metadata", "meta"), "metadata: is missing"),
        (OBJECT.replace("spec", "specs"), "spec: is missing"),
        ("name: [unclosed", "invalid YAML"),
    ],
)
def test_what_asks_for_no_reservation_says_what_is_wrong(
    tmp_path: Path, text: str, problem: str
) -> None:
    (tmp_path / "f").write_text(text)
    found, problems = read_manifests(manifests.read_files([str(tmp_path / "f")]))
    assert not found
    assert problem in str(problems[0][1])


def test_a_spec_comes_back_as_it_was_written() -> None:
    document = yaml.safe_load("""
        owners:
        - pod: {name: web-0, namespace: shop}
        - controller: {kind: ReplicaSet, name: web-5d8f, namespace: shop}
        - pod: {name: web-1, namespace: shop}
          selector:
            matchLabels: {app: web}
            matchExpressions:
            - {key: tier, operator: In, values: [front, edge]}
            - {key: canary, operator: DoesNotExist}
            namespace: shop
        node: w1
        resources: {cpu: 500m, nvidia.com/gpu: "1"}
        slots: 3
        startsAt: "2030-01-31T09:00:00Z"
        expiresAt: "2030-01-31T10:00:00.500000Z"
        policy: Require
        reusable: true
        preemptible: true
        priority: -5
    """)
    spec = serialization.read(document, "a", "other", NOW)
    assert serialization.show_spec(spec) == document
    labels = {f"label-{number:02}": "x" for number in range(40)}
    document["owners"] = [{"selector": {"matchLabels": labels, "namespace": "shop"}}]
    shown = serialization.show_spec(serialization.read(document, "a", "other", NOW))
    assert list(shown["owners"][0]["selector"]["matchLabels"]) == sorted(labels)
    assert serialization.show_spec(serialization.read(document, "a", "other", NOW)) == document
    again = {**document, "ttl": "0"}
    del again["expiresAt"]
    assert serialization.show_spec(serialization.read(again, "a", "other", NOW)) == again


def test_what_is_printed_is_what_files_hold(tmp_path: Path) -> None:
    spec = serialization.read(yaml.safe_load(SPEC), "a", "shop", NOW)
    reservation = ReservationInfo(
        name="a",
        id="reserver-system/reservations/a",
        spec=spec,
        etag="1",
        phase=Phase.ACTIVE,
        is_backed=True,
        message="",
        claims=(Claim("shop/web-0", "u"),),
        author="alice",
        labels={"team": "shop"},
    )
    (tmp_path / "f.json").write_text(
        json.dumps({"reservations": [serialization.show(reservation)]})
    )
    (found,), problems = read_manifests(manifests.read_files([str(tmp_path)]))
    assert not problems
    assert serialization.read(found.spec, found.name, "other", NOW) == spec
