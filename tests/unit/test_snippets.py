"""Every YAML file and fragment of README and docs is read by whoever reads such a file."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from reserver.cli.manifests import ManifestDocument
from reserver.cli.validate import ValidateFlags, judge
from reserver.k8s.objects.objects import decode
from reserver.moves import podmove
from reserver.patches import codec as patches_codec
from reserver.provisioning import codec as provisioning_codec
from reserver.rebalance import policy_reader as policyform
from reserver.settings import configuration
from reserver.stores import quota_codec
from reserver_demo.apiserver.custom import structure_of
from reserver_demo.apiserver.resources import RESOURCES
from reserver_demo.apiserver.schema import conform
from reserver_demo.apiserver.structural import causes, pruned
from tests.pages import ROOT

PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])
WRONG = ("# store.yaml", "# policy.yaml")
"""Invalid files: the page shows their errors."""
OTHERS = (
    "resource.customizations.health",
    "healthCheckExprs",
    "scrape_configs",
    "kind: PodTemplate",
    "kind: ValidatingAdmissionPolicy",
    "kueue.x-k8s.io",
    "consume-provisioning-request",
)
"""Files for Argo CD, Flux, Prometheus, API servers, kubelets and Kueue."""
STATUS = '"digest"'
"""The statuses that Reserver writes into NAME-status."""

_BLOCK = re.compile(r"^```yaml\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_SPEC = {"owners": [{"pod": {"name": "a", "namespace": "b"}}], "resources": {"cpu": "1"}}
_STORE = {"name": "store", "namespace": "reserver-system", "labels": {"reserver.io/store": "true"}}
_READERS: dict[str, Callable[[bytes], object]] = {
    "PodMove": lambda raw: podmove.read_object(decode(podmove.MoveObject, raw)),
    "SchedPatch": lambda raw: patches_codec.read_object(decode(patches_codec.PatchObject, raw)),
    "ReservationQuota": lambda raw: quota_codec.read_object(decode(quota_codec.QuotaObject, raw)),
}
_CRDS = {
    crd["spec"]["names"]["kind"]: structure_of(crd)
    for file in ROOT.glob("scheduler-config/**/crd*.yaml")
    for crd in yaml.safe_load_all(file.read_text())
}
_VALUES = yaml.safe_load((ROOT / "charts/reserver/values.yaml").read_text())
_BUILT_IN = {each.kind: each.schema for each in RESOURCES if each.schema}


def snippets() -> Iterator[Any]:
    for page in PAGES:
        for number, text in enumerate(_BLOCK.findall(page.read_text()), 1):
            yield pytest.param(text, id=f"{page.stem}-{number}")


@pytest.mark.parametrize("text", list(snippets()))
def test_what_a_page_shows_is_read(text: str) -> None:
    found = [problem for value in yaml.safe_load_all(text) for problem in problems(value, text)]
    assert bool(found) is text.startswith(WRONG), found


def problems(value: dict[str, Any], text: str) -> Iterator[str]:
    kind = value.get("kind", "")
    if text.startswith("# values.yaml"):
        yield from (f"the chart has no {key}" for key in value if key not in _VALUES)
    elif kind == configuration.KIND:
        configuration.parse(text.encode())
    elif kind == "DeschedulerPolicy":
        yield from map(str, policyform.read(text.encode(), lambda _: None).problems)
    elif kind == provisioning_codec.KIND:
        raw = json.dumps(with_metadata(value)).encode()
        read = provisioning_codec.read_object(decode(provisioning_codec.RequestObject, raw))
        yield from filter(None, (read.problem,))
    elif kind in _CRDS:
        yield from _schema_problems(value, kind)
        if kind in _READERS:
            _READERS[kind](json.dumps(with_metadata(value)).encode())
        else:
            yield from _reservations(value)
    elif kind in _BUILT_IN:
        yield from conform(_BUILT_IN[kind], value).unknown
        yield from _reservations(value)
    elif {"resources", "components"} & value.keys():
        yield from _missing(value)
    elif not any(word in text for word in (*OTHERS, STATUS)):
        yield from _reservations(_whole(value))


def with_metadata(value: dict[str, Any]) -> dict[str, Any]:
    """Return an object with the metadata of the API server."""
    given = {"uid": "1", "creationTimestamp": "2030-01-31T10:00:00Z", "namespace": "shop"}
    return {**value, "metadata": {**given, **value["metadata"]}}


def _schema_problems(value: dict[str, Any], kind: str) -> Iterator[str]:
    unknown: list[str] = []
    rest = {key: each for key, each in value.items() if key != "metadata"}
    pruned(rest, _CRDS[kind], "", unknown)
    yield from unknown
    yield from (str(cause) for cause in causes(rest, _CRDS[kind], ""))


def _reservations(value: dict[str, Any]) -> Iterator[str]:
    found = judge(
        [ManifestDocument("page", value)], ValidateFlags(reserver_namespace="reserver-system")
    )
    yield from map(str, found.problems)


def _whole(fragment: dict[str, Any]) -> dict[str, Any]:
    """Return the ConfigMap or the spec that a fragment is a part of."""
    if "data" in fragment:
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": _STORE, **fragment}
    return fragment if "spec" in fragment else {**_SPEC, **fragment}


def _missing(kustomization: dict[str, Any]) -> Iterator[str]:
    """Yield folders that are neither in a checkout nor next to `base`."""
    for folder in [*kustomization.get("resources", ()), *kustomization.get("components", ())]:
        here = (ROOT / folder, ROOT / "scheduler-config/overlay" / folder)
        if not any(Path(each).resolve().is_dir() for each in here):
            yield folder
