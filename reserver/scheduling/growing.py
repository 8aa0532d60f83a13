"""Pods whose resize was let through: each counts as large as it is to be, until it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from reserver.cluster.pod import Pod


class Growing:
    """What bound pods are to request, by UID, until the watch shows that they do."""

    def __init__(self) -> None:
        self._requests: dict[str, Mapping[str, int]] = {}

    def began(self, pod: Pod) -> None:
        """Note a pod with the requests that it is to have."""
        self._requests[pod.uid] = pod.requests

    def ended(self, pod: Pod) -> bool:
        """Forget that a pod was to grow; return False if it has, or was resized again since."""
        if self._requests.get(pod.uid) is not pod.requests:
            return False
        self.drop(pod.uid)
        return True

    def drop(self, pod_uid: str) -> None:
        """Forget a pod."""
        self._requests.pop(pod_uid, None)

    def grown(self, pod: Pod) -> Pod:
        """Return a pod as it is to be; forget it if it is that already."""
        if (wanted := self._requests.get(pod.uid)) is None:
            return pod
        more = {name: max(n, pod.requests.get(name, 0)) for name, n in wanted.items()}
        if more.items() <= pod.requests.items():
            self.drop(pod.uid)
            return pod
        return replace(pod, requests={**pod.requests, **more})
