"""Names the reservations in a refusal, as far as the pod may see them.

A tenant may read it, and must not learn what other namespaces reserve. The words are constant for a
pod and a reservation, so they do not make kube-scheduler try again.
"""

from __future__ import annotations

from reserver.cluster.pod import Pod
from reserver.reservations.reservation import Ref
from reserver.scheduling.state import State

ANOTHERS = "a reservation of another namespace"


def words_for(ref: Ref, pod: Pod, state: State) -> str:
    """Return a reservation's name for a message to a pod, or that it is another namespace's."""
    is_named = ref.namespace == pod.name.namespace or ref.namespace in state.public_namespaces
    return f"reservation {ref}" if is_named else ANOTHERS
