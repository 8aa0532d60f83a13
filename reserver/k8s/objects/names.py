"""Object names as Kubernetes validates them (apimachinery/pkg/util/validation)."""

from __future__ import annotations

import re

from reserver.cluster.quantity import shorten
from reserver.errors import InvalidInput

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_NATIVE = re.compile(r"cpu|memory|pods|ephemeral-storage|hugepages-[0-9A-Za-z]+")
_QUALIFIED = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_MAX_SUBDOMAIN = 253


def is_subdomain(name: str) -> bool:
    """Return whether a name is a DNS-1123 subdomain: pods, nodes, most objects."""
    return len(name) <= _MAX_SUBDOMAIN and _SUBDOMAIN.fullmatch(name) is not None


def is_resource(name: str) -> bool:
    """Return whether a name is that of a resource that a node can offer."""
    return bool(_NATIVE.fullmatch(name)) or is_extended_resource(name)


def is_extended_resource(name: str) -> bool:
    """Return whether a name is a resource in a domain other than Kubernetes' own."""
    domain, _, rest = name.partition("/")
    own = domain == "kubernetes.io" or domain.endswith(".kubernetes.io")
    return not own and is_subdomain(domain) and _QUALIFIED.fullmatch(rest) is not None


def check_subdomain(name: str, path: str, what: str) -> None:
    """Refuse what is not a DNS-1123 subdomain.

    Raises:
        InvalidInput: at `path`, saying what `what` has to look like.
    """
    if not is_subdomain(name):
        problem = f"{shorten(name)!r} is not {what}"
        raise InvalidInput(path, problem, "use lower case letters and digits, '-' and '.' between")


def check_label(name: str, path: str, what: str) -> None:
    """Refuse what is not a DNS-1123 label.

    Raises:
        InvalidInput: at `path`, saying what `what` has to look like.
    """
    if not _LABEL.fullmatch(name):
        problem = f"{shorten(name)!r} is not {what}"
        raise InvalidInput(
            path, problem, "use lower case letters and digits, '-' between, 63 at most"
        )


def is_label_key(key: str) -> bool:
    """Return whether a text is a key of a label."""
    domain, slash, rest = key.rpartition("/")
    return _QUALIFIED.fullmatch(rest) is not None and (not slash or is_subdomain(domain))


def check_label_key(key: str, path: str) -> None:
    """Refuse what is not a key of a label.

    Raises:
        InvalidInput: at `path`.
    """
    if not is_label_key(key):
        problem = f"{shorten(key)!r} is not a label's key"
        raise InvalidInput(path, problem, "write NAME or DOMAIN/NAME, the name of 63 at most")


def is_label_value(value: str) -> bool:
    """Return whether a text is a value of a label."""
    return not value or _QUALIFIED.fullmatch(value) is not None


def check_label_value(value: str, path: str) -> None:
    """Refuse what is not a value of a label.

    Raises:
        InvalidInput: at `path`.
    """
    if not is_label_value(value):
        problem = f"{shorten(value)!r} is not a label's value"
        raise InvalidInput(path, problem, "use letters, digits, '-', '_' and '.', 63 at most")
