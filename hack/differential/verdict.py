"""The verdicts of kube-scheduler and of Reserver on a pod, and their comparison."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

from reserver.cluster.pod import Pod
from reserver.cluster.snapshot import Snapshot
from reserver.scheduling.fit import fit, fits
from reserver.scheduling.reasons import NODE_AFFINITY, Reason

_COUNTED = re.compile(r"(\d+) (.+?)(?=, \d+ |$)")
_NO_NODES = re.compile(r"0/\d+ nodes are available: (.*)", re.DOTALL)
_PREEMPTION = re.compile(r"\.? ?preemption: .*", re.DOTALL)
_EXCLUDED = "node(s) didn't satisfy plugin(s) [NodeAffinity]"
_SAYS_ALL = frozenset({"NodeResourcesFit", "VolumeBinding"})
"""Plugins that give each of their reasons for a node; the others give their first one."""


@dataclass(frozen=True)
class Verdict:
    """The verdict on a pod.

    Attributes:
        nodes: the nodes that it fits on.
        reasons: without a node, the number of nodes by reason of the first plugin.
        everywhere: without a node, the reason for the pod as a whole.
    """

    nodes: frozenset[str] = frozenset()
    reasons: Counter[str] = field(default_factory=Counter)
    everywhere: str = ""


def read_message(message: str) -> Verdict:
    """Read the PodScheduled condition of a pod that fits nowhere.

    Raises:
        ValueError: the message has another form.
    """
    found = _NO_NODES.fullmatch(message)
    if found is None:
        raise ValueError(message)
    text = _PREEMPTION.sub("", found[1]).strip().removesuffix(".")
    if not text[:1].isdigit():
        return Verdict(everywhere=text)
    return Verdict(reasons=Counter({words: int(n) for n, words in _COUNTED.findall(text)}))


def judge(pod: Pod, snapshot: Snapshot) -> Verdict:
    """Return what `reserver.scheduling.fit` says of a pod."""
    possible = fits(pod, snapshot)
    rows = [row for row in snapshot.existing_rows() if possible[row]]
    if rows:
        return Verdict(nodes=frozenset(map(snapshot.name_of, rows)))
    reasons: Counter[str] = Counter()
    for name in snapshot.node_names():
        reasons.update(reason.message for reason in _first_plugin(fit(pod, name, snapshot)))
    return Verdict(reasons=reasons)


def _first_plugin(reasons: tuple[Reason, ...]) -> tuple[Reason, ...]:
    first = tuple(reason for reason in reasons if reason.plugin == reasons[0].plugin)
    return first if reasons[0].plugin in _SAYS_ALL else first[:1]


def nodes_agree(theirs: Verdict, ours: Verdict) -> bool:
    """Return whether both say that it fits on the same nodes."""
    return theirs.nodes == ours.nodes


def reasons_agree(theirs: Verdict, pod: Pod, snapshot: Snapshot) -> bool:
    """Return whether all that kube-scheduler says of a pod that fits nowhere, we say too."""
    names = snapshot.node_names()
    own = {name: fit(pod, name, snapshot) for name in names}
    if theirs.everywhere:
        return all(_says(theirs.everywhere, reasons) for reasons in own.values())
    excluded = theirs.reasons[_EXCLUDED]
    if not excluded:
        return theirs.reasons == judge(pod, snapshot).reasons
    # Node names in the affinity: kube-scheduler looks at no other node, and so knows no other
    # reason there. Which ones these are it does not say.
    affinity = [name for name, reasons in own.items() if NODE_AFFINITY in reasons]
    said = Counter(reason.message for reasons in own.values() for reason in reasons)
    given = theirs.reasons - Counter({_EXCLUDED: excluded})
    return excluded <= len(affinity) and given <= said


def _says(everywhere: str, reasons: tuple[Reason, ...]) -> bool:
    """Return whether a message has a reason, with or without a part about preemption."""
    return any(f"{everywhere}.".startswith(f"{reason.message}.") for reason in reasons)
