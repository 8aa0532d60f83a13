"""The chart renders the same objects as kustomize."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.e2e.apart.rendering import (
    BASES,
    CALLERS,
    HOME,
    MANIFESTS,
    ROUNDS_COMPONENT,
    TEMPLATE,
    Key,
    components_of,
    enabled,
    kustomize,
    render,
    render_like_kustomize,
    stdout_of,
    without_differences,
)
from tests.pages import section

pytestmark = pytest.mark.controlplane  # for its kubectl

NEEDED = {"capacity-buffers": ("autoscalers",), "maintenance": ("moves",), "surge": ("moves",)}
"""The other components that a component needs."""

LET_IN = {
    "target": {"kind": "NetworkPolicy", "name": "reserver.*"},
    "patch": yaml.safe_dump(
        [
            {
                "op": "add",
                "path": "/spec/ingress/-",
                "value": {
                    "ports": [{"port": "webhooks"}],
                    "from": [{"ipBlock": {"cidr": CALLERS}}],
                },
            }
        ]
    ),
}


def overlay(folder: Path, base: str, components: tuple[str, ...]) -> Path:
    """Write a user's kustomization.yaml, as the docs have it."""
    folder.mkdir()
    (folder / "config").symlink_to(MANIFESTS)
    wanted = {
        "resources": [f"config/{base}"],
        "components": [f"config/components/{each}" for each in components],
        "patches": [LET_IN] if "webhooks" in components else [],
    }
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(wanted))
    return folder


VARIANTS = [
    (base, components)
    for base in BASES
    for components in [
        (),
        *(tuple(sorted((*NEEDED.get(each, ()), each))) for each in components_of(base)),
        components_of(base),
    ]
]


def assert_same(found: dict[Key, Any], wanted: dict[Key, Any]) -> None:
    found, wanted = without_differences(found), without_differences(wanted)
    assert found.keys() == wanted.keys()
    for key, each in wanted.items():
        assert found[key] == each, key


@pytest.mark.parametrize(("base", "components"), VARIANTS)
def test_the_chart_renders_what_kustomize_does(
    helm: Path, tmp_path: Path, base: str, components: tuple[str, ...]
) -> None:
    wanted = kustomize(overlay(tmp_path / "user", base, components))
    assert_same(
        render_like_kustomize(helm, f"--set=mode={BASES[base]}", *enabled(components)), wanted
    )


@pytest.mark.parametrize("way", ["deployment", "cronjob"])
def test_what_rebalances_by_itself_is_rendered_as_kustomize_does(helm: Path, way: str) -> None:
    wanted = kustomize(MANIFESTS / "base") | kustomize(MANIFESTS / "rebalance" / way)
    flags = ("--set=rebalance.enabled=true", f"--set=rebalance.run={way}")
    assert_same(render_like_kustomize(helm, *flags), wanted)


def test_rounds_that_empty_nodes_have_the_rights_of_their_component(
    helm: Path, tmp_path: Path
) -> None:
    whole = kustomize(overlay(tmp_path / "user", "rebalance/deployment", (ROUNDS_COMPONENT,)))
    without = kustomize(MANIFESTS / "rebalance/deployment")
    flags = "--set=rebalance.enabled=true,rebalance.settings.defragment=true"
    found = render_like_kustomize(helm, flags)
    added = whole.keys() - without.keys()
    assert added
    assert all(found[key] == whole[key] for key in added)
    pod = found["Deployment", HOME, "reserver-rebalance"]["spec"]["template"]["spec"]
    assert "--defragment" in pod["containers"][0]["args"]


def test_rounds_beside_standby_are_rendered_as_kustomize_does_with_its_ca(helm: Path) -> None:
    wanted = kustomize(MANIFESTS / "standby") | kustomize(MANIFESTS / "rebalance/standby")
    settings = "rebalance.settings.make-room=true,rebalance.settings.mode=reserve-first"
    settings += ",rebalance.settings.dry-run=false"  # Its flag has no form with --no-.
    flags = ("--set=mode=standby,rebalance.enabled=true",)
    assert_same(render_like_kustomize(helm, *flags), wanted)
    found = render(helm, *flags, f"--set=moves.enabled=true,{settings}")
    pod = found["Deployment", "reserver-system", "reserver-rebalance"]["spec"]["template"]["spec"]
    assert pod["containers"][0]["args"][-2:] == ["--make-room", "--mode=reserve-first"]


def test_the_static_pods_files_are_rendered_as_kustomize_does(helm: Path) -> None:
    found = render_like_kustomize(helm, "--set=mode=static-pod")
    assert_same(found, kustomize(MANIFESTS / "static-pod"))


def test_no_object_names_a_namespace_that_the_release_is_not_in(helm: Path) -> None:
    for base, mode in BASES.items():
        flags = ("--namespace=elsewhere", *enabled(components_of(base)), f"--set=mode={mode}")
        assert "reserver-system" not in stdout_of(helm, *TEMPLATE, *flags)


@pytest.mark.parametrize("base", BASES)
def test_manifests_with_another_namespace_are_what_the_chart_renders_there(
    helm: Path, tmp_path: Path, base: str
) -> None:
    (tmp_path / "scheduler-config").symlink_to(MANIFESTS)
    for line in section("docs/install.md", "Another namespace"):
        subprocess.run(["bash", "-c", line], cwd=tmp_path, check=True)
    found = render_like_kustomize(helm, "--namespace=held", f"--set=mode={BASES[base]}")
    del found["Pod", "held", "reserver-test"]
    assert_same(found, kustomize(tmp_path / "held" / base))


def test_a_store_in_another_namespace_needs_the_role_there(helm: Path) -> None:
    found = render(helm, "--set=settings.configmap={unicore/reservation}")
    assert ("Role", "unicore", "reserver") in found
    assert ("RoleBinding", "unicore", "reserver") in found
