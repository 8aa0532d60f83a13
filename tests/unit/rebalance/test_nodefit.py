"""The nodes that a pod fits on are judged again once pods have left."""

import numpy as np

from reserver.rebalance.nodefit import NodeFit
from reserver.rebalance.pod_index import PodIndex
from tests.unit.rebalance.build import cluster_of, node, pod

WHOLE = {"cpu": "4"}


def test_a_pod_fits_on_a_node_that_another_pod_has_left() -> None:
    view = PodIndex(
        cluster_of(node("a"), node("b"), *(pod(each, each, requests=WHOLE) for each in "ab"))
    )
    fit, among = NodeFit(view), np.ones(2, dtype=np.bool_)
    names = [each.pod.name.name for each in view.pods]
    stays, leaves = names.index("a"), names.index("b")
    assert not fit.fits_elsewhere(stays, among)
    view.evict(leaves)
    assert fit.fits_elsewhere(stays, among)
