"""`validate`: all forms of a reservation, and their errors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner, Result

from reserver.cli.main import app
from tests.unit.cli.written import NAMED, OBJECT, SPEC


def validate(tmp_path: Path, text: str, *more: str) -> Result:
    (tmp_path / "f").write_text(text)
    return CliRunner().invoke(app, ["validate", "-f", str(tmp_path / "f"), *more])


def configmap(**data: str) -> str:
    labels = {"reserver.io/store": "true"}
    metadata = {"name": "s", "namespace": "reserver-system", "labels": labels}
    return json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})


ITEM = '{"pod": "web-0", "namespace": "shop", "cpu": 1, "mem": 0, "expire": 1896084000}'
LONG = (
    '{"reservingPod": "web-1", "reservingPodNamespace": "shop", "cpuMilli": 1, "memMilli": 0, '
    '"expireAt": "2030-01-31T10:00:00Z"}'
)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        (OBJECT, 1),
        (OBJECT.replace(", namespace: shop", ""), 1),
        (NAMED, 1),
        (SPEC, 1),
        (configmap(a=SPEC, w1=f"[{ITEM}]", w2=f"[{LONG}, {ITEM}]"), 4),
        (configmap(), 0),
        (f"{OBJECT}---\n{NAMED}", 2),
        ('{"apiVersion": "v1", "kind": "Pod"}', 0),
    ],
)
def test_every_form_is_read(tmp_path: Path, text: str, count: int) -> None:
    result = validate(tmp_path, text)
    assert (result.exit_code, result.stdout) == (0, f"{count} valid, 0 problems\n")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (configmap(a=SPEC.replace("2", '"two"')), ": a: resources.cpu: 'two' is not a qu"),
        (configmap(w1=f"[{ITEM.replace('1,', '-1,')}]"), ": w1: [0].cpu: -1 is negative; write"),
        (
            configmap(w1=f"[{ITEM.replace('0,', '4,')}]"),
            ": w1: [shop/web-0]: memory: 4 is 4 bytes, less than a pod can run in; write bytes: ",
        ),
        (
            configmap(a=SPEC.replace("cpu", "memory")),
            ": a: resources.memory: 2 is 2 bytes, less than a pod can run in; did you mean 2Gi?",
        ),
        (configmap(w1=f"[{ITEM}, {ITEM}]"), ": w1: [1]: pod shop/web-0 is in the list already"),
        (OBJECT.replace("w1", "W_1"), ": spec.node: 'W_1' is not a node's name; use lower"),
        (OBJECT.replace("name: a,", "name: A_1,"), ": metadata.name: 'A_1' is not a reserva"),
        (OBJECT.replace("space: shop}", "space: S.p}"), ": metadata.namespace: 'S.p' is not"),
        (
            OBJECT.replace('"shop"', '"x"'),
            ": spec.owners[0]: namespace 'x' is",
        ),
        (f"{NAMED}---\n{NAMED.replace('2', '-2')}", ":2: spec.resources.cpu: -2 is neg"),
        ('{"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": 5}}', ": data[...]: Expected"),
        ("a: [", "invalid YAML"),
        ("a: &x 1\nb: *x", "YAML aliases are not supported"),
        ("[" * 100_000, "nested too deeply"),
        (NAMED.replace('{"owners"', '{"slots": ' + "9" * 90 + ', "owners"'), ": spec.slots: "),
        (OBJECT.replace('"cpu": 2', '"cpu": 2, "cpu": 3'), "is given twice"),
        (OBJECT.replace("name: a,", ""), ": metadata.name: is missing"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str, line: str) -> None:
    result = validate(tmp_path, text)
    assert result.exit_code == 1
    assert line in result.stderr
    assert result.stderr.startswith(f"reserver: {tmp_path}/f")


def test_one_broken_entry_costs_no_other(tmp_path: Path) -> None:
    text = f"{configmap(a=SPEC, b='x: 1')}\n"
    result = validate(tmp_path, text, "-o", "json")
    assert result.exit_code == 1
    printed = json.loads(result.stdout)
    assert (printed["valid"], printed["reservations"]) == (False, 1)
    (problem,) = printed["problems"]
    assert (problem["key"], problem["document"]) == ("b", f"{tmp_path}/f")
    assert problem["problem"]
    assert problem["remedy"]


def test_a_megabyte_of_yaml_is_read(tmp_path: Path) -> None:
    items = ", ".join(ITEM.replace("web-0", f"web-{number}") for number in range(12_000))
    text = "apiVersion: v1\nkind: ConfigMap\n" + yaml.safe_dump(
        {"metadata": {"name": "s", "labels": {"reserver.io/store": "true"}}}
    )
    text += f"data:\n  w1: '[{items}]'\n"
    result = validate(tmp_path, text)
    assert (result.exit_code, result.stdout) == (0, "12000 valid, 0 problems\n")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            NAMED.replace('"cpu": 2}', '"cpu": 2}, "expiresAt": "2020-01-31T10:00:00Z"'),
            "spec.expiresAt: lies in the past",
        ),
        (
            OBJECT.replace('"cpu": 2}', '"cpu": 2}, "expiresAt": "2020-01-31T10:00:00Z"'),
            "spec.expiresAt: lies in the past",
        ),
        (configmap(w1=f"[{ITEM.replace('1896084000', '1580464800')}]"), "[shop/web-0].expire"),
    ],
)
def test_what_is_over_already_is_refused(tmp_path: Path, text: str, line: str) -> None:
    result = validate(tmp_path, text)
    assert (result.exit_code, result.stdout) == (1, "0 valid, 1 problem\n")
    assert line in result.stderr
    assert "lies in the past" in result.stderr


def test_a_store_that_nobody_reads_is_refused(tmp_path: Path) -> None:
    unlabelled = configmap(a=SPEC).replace('"true"', '"yes"')
    result = validate(tmp_path, unlabelled)
    assert (result.exit_code, result.stdout) == (1, "0 valid, 1 problem\n")
    assert "metadata.labels: lacks reserver.io/store" in result.stderr
    elsewhere = configmap(a=SPEC).replace("reserver-system", "shop")
    assert "'shop' is not reserver's own" in validate(tmp_path, elsewhere).stderr
    assert validate(tmp_path, elsewhere, "--configmap", "shop/s").exit_code == 0
    assert validate(tmp_path, unlabelled, "--configmap", "reserver-system/s").exit_code == 0
    other = validate(tmp_path, configmap(motd="hello").replace('"true"', '"no"'))
    assert (other.exit_code, other.stdout) == (0, "0 valid, 0 problems\n")
    assert "skipped, a ConfigMap" in other.stderr


def test_whose_pods_an_owner_without_a_namespace_means_is_said(tmp_path: Path) -> None:
    silent = validate(tmp_path, configmap(a=SPEC))
    assert silent.stderr == ""
    text = SPEC.replace(', "namespace": "shop"', "")
    result = validate(tmp_path, configmap(a=text))
    assert result.exit_code == 0
    assert (
        "a: an owner names no namespace, so its pods are those of reserver-system" in result.stderr
    )
    assert validate(tmp_path, OBJECT.replace(SPEC, text)).stderr == ""


WINDOW = """\
apiVersion: reserver.io/v1alpha1
kind: MaintenanceWindow
metadata: {name: disks}
spec:
  nodes: [worker-1]
  schedule: {cron: "0 22 * * 0", duration: 4h}
"""


@pytest.mark.parametrize(
    ("before", "after", "line"),
    [
        ("0 22 * * 0", "0 22 * *", "spec.schedule.cron: "),
        ("[worker-1]", "[]", "spec.nodes: is empty; list nodes, or write a nodeSelector"),
        ("4h}", "4h}\n  drainBefore: soon", "spec.drainBefore: "),
        ("nodes:", "node:", "spec: "),
        ("spec:", "specs:", "spec: "),
    ],
)
def test_a_maintenance_window_is_checked_too(
    tmp_path: Path, before: str, after: str, line: str
) -> None:
    good = validate(tmp_path, WINDOW)
    assert (good.exit_code, good.stdout, good.stderr) == (0, "1 valid, 0 problems\n", "")
    bad = validate(tmp_path, WINDOW.replace(before, after))
    assert (bad.exit_code, bad.stdout) == (1, "0 valid, 1 problem\n")
    assert line in bad.stderr


def test_fields_that_only_a_newer_version_has_are_named(tmp_path: Path) -> None:
    newer = SPEC.replace('"node"', '"tenancy": 1, "node"')
    noted = validate(tmp_path, configmap(a=newer))
    assert (noted.exit_code, noted.stdout) == (0, "1 valid, 0 problems\n")
    assert "a: ignored, because this version does not know the field: tenancy" in noted.stderr
    dropped = validate(tmp_path, OBJECT.replace(SPEC, newer))
    assert (dropped.exit_code, dropped.stdout) == (1, "0 valid, 1 problem\n")
    assert "spec: 'tenancy' is not a field; the fields" in dropped.stderr


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('"pod"', "spec.owners[0]: 'pods' is not a field; write pod; the fields here are pod, con"),
        ('"policy": "require", "node"', "spec.policy: 'require' is not supported; write Pref"),
        ('"slots": "2", "node"', "spec.slots: '2' is not a whole number; write one, without quot"),
        ('"reusable": 1, "node"', "spec.reusable: 1 is not true or false; write one of them"),
        ('"ttl": [], "node"', "spec.ttl: a list is not a text or a whole number"),
        ('"startAt": "x", "node"', "spec: 'startAt' is not a field; write startsAt; the fields he"),
        (
            '"nod"',
            "spec: 'nod' is not a field; write node; the fields here are startsAt, expiresAt",
        ),
    ],
)
def test_what_may_be_written_instead_is_named(tmp_path: Path, text: str, line: str) -> None:
    old = '"pod"' if text == '"pod"' else '"node"'
    result = validate(tmp_path, NAMED.replace(old, '"pods"' if old == text else text))
    assert result.exit_code == 1
    assert line in result.stderr


def test_yaml_that_begins_like_json_is_told_what_it_is_taken_for(tmp_path: Path) -> None:
    result = validate(tmp_path, "{name: a, spec: {}}")
    assert "invalid JSON" in result.stderr
    assert "quote all names, or write YAML in lines" in result.stderr
    two = validate(tmp_path, f"{SPEC}\n---\n{SPEC}")
    assert two.stdout == "2 valid, 0 problems\n"
