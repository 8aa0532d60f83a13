"""Was anybody but owners, and pods that belong to it, bound onto a node that is held whole?"""

from __future__ import annotations

from collections.abc import Iterator

from hack.promises.case import Case
from hack.promises.report import Kind, Violation


def intruded(case: Case) -> Iterator[Violation]:
    """Yield the bindings of others onto whole nodes, whatever the pods request."""
    for pod in case.world.pods:
        if pod.binding is None or not case.is_judged(pod) or pod.belongs_to_node:
            continue
        span, node = case.timing.span(pod.binding), pod.binding.node
        for life in case.world.lives_on.get(node, ()):
            if case.holds_whole(life, node, span) and not life.may_be_of(pod):
                yield Violation(
                    kind=Kind.GIVEN_AWAY,
                    revision=span.revision,
                    at=pod.binding.moment.at,
                    node=node,
                    pod=pod.name,
                    entry=str(life.ref),
                    sums={},
                    text="bound onto a node that is held whole for others",
                )
