"""The policy file of a rebalancer, read again before each round."""

from __future__ import annotations

from pathlib import Path

import structlog

from reserver.errors import ConfigurationError
from reserver.rebalance.policy import DeschedulerPolicy
from reserver.rebalance.policy_decoding import PriorityClasses
from reserver.rebalance.policy_reader import read
from reserver.settings.strict_yaml import MOST_BYTES

log = structlog.get_logger(__name__)


class PolicyFile:
    """A policy file.

    Attributes:
        problems: problems of the current text; the last valid policy stays in force then.
    """

    def __init__(self, path: Path) -> None:
        """Read it from a path, which may lead elsewhere each time, as in a mounted ConfigMap."""
        self._path = path
        self._raw: bytes | None = None
        self._good: DeschedulerPolicy | None = None
        self.problems: tuple[str, ...] = ()

    def read(self, classes: PriorityClasses) -> DeschedulerPolicy:
        """Return the policy, or the last good one while the file is broken.

        Args:
            classes: the values of the cluster's PriorityClasses, which may change as well.

        Raises:
            ConfigurationError: it is broken, and was never good.
        """
        raw = b""
        try:
            with self._path.open("rb") as file:
                raw = file.read(MOST_BYTES + 1)
            policy, found, noted = read(raw, classes)
            problems, warnings = tuple(map(str, found)), tuple(map(str, noted))
        except OSError as exc:
            policy, problems, warnings = None, (f"cannot be read: {exc.strerror}",), ()
        if (raw, problems) != (self._raw, self.problems):
            self._tell(problems, warnings)
        self._raw, self.problems = raw, problems
        if policy is not None:
            self._good = policy
        if self._good is None:
            raise ConfigurationError("\n".join(f"{self._path}: {each}" for each in problems))
        return self._good

    def _tell(self, problems: tuple[str, ...], warnings: tuple[str, ...]) -> None:
        for warning in warnings:
            log.warning("policy has fields without effect", file=str(self._path), why=warning)
        if self._good is None:
            return
        for problem in problems:
            log.error("policy is broken, the last good one is in force", why=problem)
        if not problems:
            log.info("policy read again", file=str(self._path))
