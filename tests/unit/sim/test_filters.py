"""kube-scheduler's own filters, scores and words."""

import pytest

from reserver.sim.apiserver.quantities import canonical
from reserver.sim.scheduler.filters import score, why_not
from reserver.sim.scheduler.objects import NodeView, PodView, parse_node, parse_pod
from reserver.sim.scheduler.verdict import NotSchedulableError
from reserver.wire.k8s.objects import encode


def _pod(cpu: str = "1", memory: str = "1Gi", **spec: object) -> PodView:
    requests = {"requests": {"cpu": cpu, "memory": memory}}
    containers = [{"name": "a", "resources": requests}]
    body = {"metadata": {"name": "p", "namespace": "d"}, "spec": {"containers": containers, **spec}}
    return parse_pod(encode(body))


def _node(**spec: object) -> NodeView:
    allocatable = {"cpu": "4", "memory": "8Gi", "pods": "10"}
    metadata = {"name": "n", "labels": {"zone": "a"}}
    return parse_node(
        encode({"metadata": metadata, "spec": spec, "status": {"allocatable": allocatable}})
    )


def test_a_pod_fits_up_to_the_last_bit() -> None:
    used = {"cpu": 3000, "memory": 7 * 2**30, "pods": 9}
    assert why_not(_pod(), _node(), used) == ()
    assert why_not(_pod(cpu="1001m"), _node(), used) == ("Insufficient cpu",)


def test_every_resource_that_lacks_is_named() -> None:
    used = {"cpu": 4000, "memory": 8 * 2**30, "pods": 10}
    reasons = why_not(_pod(), _node(), used)
    assert sorted(reasons) == ["Insufficient cpu", "Insufficient memory", "Too many pods"]


@pytest.mark.parametrize(
    ("pod", "node", "reason"),
    [
        (_pod(), _node(unschedulable=True), "node(s) were unschedulable"),
        (
            _pod(nodeName="other"),
            _node(),
            "node(s) didn't match the requested node name",
        ),
        (
            _pod(nodeSelector={"zone": "b"}),
            _node(),
            "node(s) didn't match Pod's node affinity/selector",
        ),
        (_pod(cpu="100", nodeSelector={"zone": "a"}), _node(), "Insufficient cpu"),
    ],
)
def test_the_first_filter_gives_the_reason(pod: PodView, node: NodeView, reason: str) -> None:
    assert why_not(pod, node, {}) == (reason,)


def test_a_cordon_can_be_tolerated() -> None:
    toleration = {"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}
    assert why_not(_pod(tolerations=[toleration]), _node(unschedulable=True), {}) == ()


def test_the_emptier_node_scores_higher() -> None:
    assert score(_pod(), _node(), {}) == (75 + 87) // 2
    assert score(_pod(), _node(), {"cpu": 2000}) == (25 + 87) // 2
    assert score(_pod(cpu="8", memory="16Gi"), _node(), {}) == 0


def test_a_refusal_is_worded_as_kube_scheduler_does() -> None:
    reasons = {
        "a": ("Insufficient cpu",),
        "b": ("Too many pods", "Insufficient cpu"),
        "c": ("held by reservation x",),
    }
    refusal = NotSchedulableError(5, reasons, by_extender=True)
    assert str(refusal) == (
        "0/5 nodes are available: 1 Too many pods, 1 held by reservation x, 2 Insufficient cpu."
    )
    assert str(NotSchedulableError(2, {}, by_extender=True)) == "0/2 nodes are available:"


@pytest.mark.parametrize(
    ("written", "stored"),
    [
        ("1000m", "1"),
        ("0.5", "500m"),
        (2, "2"),
        (0.1, "100m"),
        ("1500m", "1500m"),
        ("1024Mi", "1Gi"),
        ("1.5Gi", "1536Mi"),
        ("0.5Mi", "512Ki"),
        ("1024", "1024"),
        ("1000Ki", "1000Ki"),
        ("1e3", "1e3"),
        ("100n", "100n"),
        ("0Gi", "0"),
        ("-1000m", "-1"),
    ],
)
def test_quantities_are_stored_in_canonical_form(written: str | float, stored: str) -> None:
    assert canonical(written) == stored


@pytest.mark.parametrize("text", ["", "x", "1 Gi", "1gi", "--1", "1e", "Gi"])
def test_what_is_no_quantity(text: str) -> None:
    with pytest.raises(ValueError, match="quantities must match"):
        canonical(text)
