"""Koordinator's prod pods, and what they use of a node together."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from reserver.rebalance.cluster_state import ListedPod
from reserver.rebalance.load import SmoothedLoad
from reserver.rebalance.readings import Usage

_CLASS = "koordinator.sh/priority-class"
_QOS = "koordinator.sh/qosClass"
_PROD, _OTHERS = "koord-prod", frozenset({"koord-mid", "koord-batch", "koord-free"})
_PRIORITIES = range(9000, 10_000)
_OTHER_PRIORITIES = (range(7000, 8000), range(5000, 6000), range(3000, 4000))
_PROD_QOS = frozenset({"LSE", "LSR", "LS", "SYSTEM"})


def is_prod(pod: ListedPod) -> bool:
    """Return whether a pod is of the class prod (apis/extension/priority_utils.go).

    Its label decides, else its priority, else its QoS: all but BestEffort.
    """
    if (said := pod.pod.labels.get(_CLASS)) is not None:
        if said == _PROD or said in _OTHERS:
            return said == _PROD
    elif pod.priority in _PRIORITIES:
        return True
    elif any(pod.priority in each for each in _OTHER_PRIORITIES):
        return False
    qos = pod.pod.labels.get(_QOS, "")
    if qos in _PROD_QOS or qos == "BE":
        return qos != "BE"
    return pod.qos != "BestEffort"


def prod_usage(
    pods: Iterable[ListedPod], load: SmoothedLoad, resources: Collection[str]
) -> Usage | str:
    """Return what the prod pods of a node use of some resources, or why that is not known.

    A pod that is too young to have metrics counts as one that uses nothing, as in Koordinator.
    """
    prod = [pod for pod in pods if not pod.pod.finished and is_prod(pod)]
    known = [load.pods[pod.name] for pod in prod if pod.name in load.pods]
    measured = [each for each in resources if each != "pods"]
    missing = [each for each in measured if not any(each in usage for usage in known)]
    if prod and missing:
        return f"its metrics do not say how much {', '.join(missing)} its prod pods use"
    totals = {each: sum(usage.get(each, 0.0) for usage in known) for each in measured}
    return {
        each: float(len(prod)) if each == "pods" else float(round(totals[each]))
        for each in resources
    }
