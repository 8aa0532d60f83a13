"""A ReserverConfiguration is read strictly, and goes together with the flags."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from hack.configuration_schema import schema
from reserver.cli.serve import deprecated
from reserver.errors import ConfigurationError, InvalidInput
from reserver.reservations.enums import StoreKind
from reserver.settings import configuration
from reserver.settings.configuration import changes, document, feature_gates, live, merged, parse
from reserver.settings.configuration_file import ConfigurationFile
from reserver.settings.flags import Stage
from reserver.settings.serve import LogLevel, Settings

HEAD = "apiVersion: reserver.io/v1alpha1\nkind: ReserverConfiguration\n"
FILE = Path("c.yaml")
FLAGS = Settings(config=FILE)
OPEN = {"reservation_store", "logging_format", "tenant_ceiling_cluster"}
"""Settings whose default depends on others."""

TYPES: dict[str, Any] = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "number": int,
    "integer": int,
    "null": type(None),
}


def refused(value: Any, rules: dict[str, Any], path: str = "") -> Iterator[str]:
    """Yield the errors of a value in a schema, by the keywords of our schema."""
    kinds = rules.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    is_kind = not kinds or isinstance(value, tuple(TYPES[kind] for kind in kinds))
    is_known = value in rules.get("enum", [value]) and value == rules.get("const", value)
    is_formed = not isinstance(value, str) or re.search(rules.get("pattern", ""), value)
    if not (is_kind and is_known and is_formed):
        yield path
    elif isinstance(value, list):
        for each in value:
            yield from refused(each, rules["items"], path)
    elif isinstance(value, dict):
        yield from (name for name in rules.get("required", ()) if name not in value)
        for name, each in value.items():
            below = rules.get("properties", {}).get(name, rules["additionalProperties"])
            yield from refused(each, below, f"{path}.{name}") if below else (f"{path}.{name}",)


REFUSED = {
    "": "is empty; begin with apiVersion: reserver.io/v1alpha1",
    "# nothing": "is empty; begin with",
    "- a": "is not a mapping; begin with",
    "kind: ReserverConfiguration": "apiVersion: is missing; write reserver.io/v1alpha1",
    "apiVersion: reserver.io/v2": "apiVersion: 'reserver.io/v2' is not read; write reserver.io/v1",
    "apiVersion: reserver.io/v1alpha1\nkind: A": "kind: 'A' is not read; write ReserverConfig",
    HEAD + "defaultQutoa: {}": "defaultQutoa: is not a field; write defaultQuota",
    HEAD + "logging: {levle: debug}": "logging.levle: is not a field; write level",
    HEAD + "logging: {level: loud}": "logging.level: 'loud' is not known; write debug, info",
    HEAD + "logging: debug": "logging: 'debug' is not a mapping; write its fields below it",
    HEAD + "featureGates: {PodMove: true}": "featureGates: unrecognized feature gate: PodMove; "
    "write PodMoves",
    HEAD + "featureGates: {Old: true}": "featureGates: unrecognized feature gate: Old; remove it; ",
    HEAD + "featureGates: [PodMoves]": "featureGates: a list is not a mapping; write its fields",
    HEAD + "featureGates: {PodMoves: yes}": "featureGates.PodMoves: yes is a boolean in YAML 1.1",
    HEAD + 'featureGates: {PodMoves: "true"}': "featureGates.PodMoves: 'true' is not a boolean",
    HEAD + "requireCRD: 1": "requireCRD: 1 is not a boolean; write true or false",
    HEAD + "exemptNamespaces: a": "exemptNamespaces: 'a' is not a list",
    HEAD + "exemptNamespaces: [A]": "exemptNamespaces: 'A' is not a name of Kubernetes",
    HEAD + "exemptNamespaces: [a, null]": "exemptNamespaces: '' is not a name of Kubernetes",
    HEAD + f"exemptNamespaces: [{'a,' * 1001}]": "exemptNamespaces: 1001 items are too many",
    HEAD + "daemonControllers: [apps.kruise.io/DaemonSet]": "daemonControllers: .* is not of the "
    "form APIVERSION/KIND; write e.g. apps.kruise.io/v1alpha1/DaemonSet",
    HEAD + "storeConfigMaps: [a]": "storeConfigMaps: 'a' is not of the form NAMESPACE/NAME",
    HEAD + "historyTTL: 5": "historyTTL: 5 is not a text; write it in quotes",
    HEAD + "historyTTL: 5x": "historyTTL: '5x' is not a duration; write hours",
    HEAD + "historyTTL: 999999999h": "historyTTL: .* longer than ten years; write a shorter",
    HEAD + "defaultQuota: 5": "defaultQuota: Expected `object`, got `int`",
    HEAD + "defaultQuota: {hard: {cpu: 1}}": "defaultQuota.hard.cpu: is not counted by quotas",
    HEAD + "defaultQuota: {hard: {held.cpu: -1}}": "defaultQuota.hard.held.cpu: ",
    HEAD + 'defaultQuota: {hard: {held.cpu: "1,maxTTL=1h"}}': "defaultQuota.hard.held.cpu: ",
    HEAD + "defaultQuota: {maxTTL: 0}": "defaultQuota.maxTTL: ",
    HEAD + "tenantCeiling: {cluster: 80}": "tenantCeiling.cluster: 80 is not a text; write it in",
    HEAD + "tenantCeiling: {cluster: 0%}": "tenantCeiling.cluster: '0%' is no percentage; write 1%",
    HEAD + "tenantCeiling: {cluster: 101%}": "tenantCeiling.cluster: '101%' is no percentage",
    HEAD + "tenantCeiling: {node: 0.5}": "tenantCeiling.node: 0.5 is not a text",
    HEAD + 'tenantCeiling: {node: "½%"}': "tenantCeiling.node: '½%' is no percentage",
    HEAD + 'tenantCeiling: {node: "%"}': "tenantCeiling.node: '%' is no percentage",
    HEAD + "kind: ReserverConfiguration": "kind: is given twice; remove one of them",
    HEAD + "---\n" + HEAD: "a second document follows; write one",
    HEAD + "logging: !!python/object:os.system ls": "the tag .* is not read",
    HEAD + "a: &a [x]\nb: [*a, *a]": "a: is not a field",
    HEAD + "<<: {requireCRD: true}": "<< is a key of YAML 1.1",
    HEAD + "logging: {" * 100: ".*(deep|invalid YAML)",
    "a" * 2**20: "262145 bytes are too many|1048576 bytes are too many",
}


@pytest.mark.parametrize("text", REFUSED, ids=lambda text: text.removeprefix(HEAD)[:40])
def test_what_is_not_acceptable_is_named_with_its_field_and_a_remedy(text: str) -> None:
    with pytest.raises(ConfigurationError, match=f"(?m)^({REFUSED[text]})") as refused:
        parse(text.encode())
    assert "; " in str(refused.value)


def test_all_problems_of_a_file_are_reported_in_a_line_each() -> None:
    text = HEAD + "historyTTL: 5x\nwarnBeforeExpiry: 6x\nnew: 1\n"
    with pytest.raises(ConfigurationError) as refused:
        parse(text.encode())
    paths = [line.partition(":")[0] for line in str(refused.value).splitlines()]
    assert sorted(paths) == ["historyTTL", "new", "warnBeforeExpiry"]


def test_what_is_shown_is_read_as_the_same_settings() -> None:
    given = Settings(
        config=FILE,
        configmaps=(("a", "b"),),
        exempt_namespaces=("c", "d"),
        pod_moves=True,
        default_quota="held.cpu=0,maxTTL=1h,nodeNames=Forbidden",
        history_ttl=90.0,
        warn_before_expiry=0.5,
        log_level=LogLevel.DEBUG,
    )
    for settings in (given, FLAGS, Settings(config=FILE, default_quota="none")):
        shown = document(settings)
        assert not list(refused(shown, schema()))
        values = parse(json.dumps(shown).encode())
        fields = {each.of.field for each in configuration.entries()}
        assert fields - set(values) <= OPEN
        assert merged(FLAGS, values) == settings


def test_a_file_that_is_being_written_is_read_once_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    flags = Settings(config=path)
    path.write_text(HEAD + "historyTTL: 1h\n")
    file = ConfigurationFile(path)
    assert file.settings(flags).history_ttl == 3600
    assert not file.has_changed()
    path.write_text(HEAD)  # All that is written so far: acceptable, and every field by default.
    assert not file.has_changed()
    with path.open("a") as rest:
        rest.write("historyTTL: 2h\n")
    assert not file.has_changed()
    assert file.has_changed()
    assert file.settings(flags).history_ttl == 7200
    assert not file.has_changed()


@pytest.mark.parametrize("what", ["directory", "nothing", "a megabyte"])
def test_what_is_no_file_of_ours_is_refused_with_its_path(tmp_path: Path, what: str) -> None:
    path = tmp_path / "c.yaml"
    if what == "directory":
        path.mkdir()
    elif what == "a megabyte":
        path.write_bytes(b"#" * 2**20)
    with pytest.raises(ConfigurationError, match=f"^{path}: .*; "):
        ConfigurationFile(path).settings(Settings(config=path))


def test_a_gate_that_is_ga_cannot_be_switched_off() -> None:
    (gate,) = (each for each in configuration.entries() if each.name == "PodMoves")
    gate = gate._replace(here=replace(gate.here, stage=Stage.GA))
    assert gate.read(written=True) is True
    with pytest.raises(InvalidInput) as refused:
        gate.read(written=False)
    problem = "cannot set feature gate PodMoves to false, feature is locked to true"
    assert str(refused.value) == f"featureGates: {problem}; remove it"


def test_the_schema_shows_the_stage_of_each_gate() -> None:
    gates = schema()["properties"]["featureGates"]["properties"]
    for gate in feature_gates(Settings(capacity_buffers=True, keep_held_nodes=True)):
        assert gates[gate.name]["description"].startswith(f"{gate.stage}: ")
        assert gate.is_enabled is (gate.name in {"CapacityBuffers", "KeepHeldNodes"})


def test_the_schema_refuses_what_is_no_field() -> None:
    for text in ("historyTTL: 5", "new: 1", "featureGates: {New: true}", "logging: {level: loud}"):
        assert list(refused(yaml.safe_load(HEAD + text), schema())), text


def test_a_flag_that_contradicts_the_file_is_refused_and_one_that_repeats_it_is_not() -> None:
    values = parse((HEAD + "logging: {level: debug}\nhistoryTTL: 1h").encode())
    flags = Settings(config=FILE, given=frozenset({"log_level"}))
    with pytest.raises(
        ConfigurationError,
        match=r"logging.level: debug contradicts --log-level, which is info; rem",
    ):
        merged(flags, values)
    flags = Settings(config=FILE, log_level=LogLevel.DEBUG, given=frozenset({"log_level"}))
    assert merged(flags, values).history_ttl == 3600.0
    flags = Settings(config=FILE, crd=True, given=frozenset({"crd"}))
    assert merged(flags, values).crd


def test_the_flags_that_a_field_replaces_are_deprecated() -> None:
    given = frozenset({"crd", "log_level", "namespace"})
    assert deprecated(Settings(crd=False, given=given)) == {"--crd": "requireCRD"}


def test_settings_of_flags_and_file_are_judged_together() -> None:
    flags = Settings(config=FILE, capacity_buffers=True, given=frozenset({"capacity_buffers"}))
    with pytest.raises(ConfigurationError, match=r"--keep-held-nodes \(featureGates.KeepHeldN"):
        merged(flags, {})
    values = parse((HEAD + "featureGates: {KeepHeldNodes: true}").encode())
    assert merged(flags, values).keep_held_nodes


def test_what_takes_effect_at_once_is_told_from_what_needs_a_restart() -> None:
    text = HEAD + "logging: {level: debug}\nrequireCRD: false\nexemptNamespaces: [a]"
    after = merged(FLAGS, parse(text.encode()))
    assert changes(FLAGS, after) == (("exemptNamespaces", "logging.level"), ("requireCRD",))
    in_force = live(FLAGS, after)
    assert (in_force.log_level, in_force.crd) == (LogLevel.DEBUG, True)
    assert changes(in_force, after) == ((), ("requireCRD",))


def test_a_field_that_goes_has_its_default_again() -> None:
    before = merged(FLAGS, parse((HEAD + "exemptNamespaces: [a]").encode()))
    after: Any = merged(before, parse(HEAD.encode()))
    assert after.exempt_namespaces == ()


@pytest.mark.parametrize(
    ("given", "store", "needs_crd"),
    [
        ({}, StoreKind.OBJECT, True),
        ({"crd": False}, StoreKind.CONFIGMAP, False),
        ({"crd": False, "reservation_store": StoreKind.OBJECT}, StoreKind.OBJECT, True),
        ({"crd": False, "provisioning_requests": True}, StoreKind.CONFIGMAP, True),
        ({"reservation_store": StoreKind.CONFIGMAP}, StoreKind.CONFIGMAP, True),
    ],
)
def test_objects_are_the_store_unless_the_crd_is_switched_off(
    given: dict[str, Any], store: StoreKind, *, needs_crd: bool
) -> None:
    settings = Settings(**given)
    assert (settings.store, settings.needs_crd) == (store, needs_crd)
