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
_IN_QUOTA = "requests."


def is_subdomain(name: str) -> bool:
    """Return whether a name is a DNS-1123 subdomain, as for pods, nodes and most objects."""
    return len(name) <= _MAX_SUBDOMAIN and _SUBDOMAIN.fullmatch(name) is not None


def is_label(name: str) -> bool:
    """Return whether a name is a DNS-1123 label, as for namespaces."""
    return _LABEL.fullmatch(name) is not None


def is_resource(name: str) -> bool:
    """Return whether a name is a resource that a node can offer."""
    return bool(_NATIVE.fullmatch(name)) or is_extended_resource(name)


def is_extended_resource(name: str) -> bool:
    """Return whether a name is a resource in a domain other than Kubernetes' own.

    Its name in a ResourceQuota, with ``requests.`` before it, has to be valid too, and no resource
    has such a name (`IsExtendedResourceName` in pkg/apis/core/v1/helper).
    """
    domain, _, rest = name.partition("/")
    own = domain == "kubernetes.io" or domain.endswith(".kubernetes.io")
    is_free = not own and not domain.startswith(_IN_QUOTA) and is_subdomain(_IN_QUOTA + domain)
    return is_free and _QUALIFIED.fullmatch(rest) is not None


def is_label_key(key: str) -> bool:
    """Return whether a text is a valid label key."""
    domain, slash, rest = key.rpartition("/")
    return _QUALIFIED.fullmatch(rest) is not None and (not slash or is_subdomain(domain))


def is_label_value(value: str) -> bool:
    """Return whether a text is a valid label value."""
    return not value or _QUALIFIED.fullmatch(value) is not None


def check_subdomain(name: str, path: str, what: str) -> None:
    """Raise InvalidInput, "is not `what`" at `path`, unless a name is a DNS-1123 subdomain."""
    remedy = "use lower case letters and digits, '-' and '.' between"
    _check(name, path, what, remedy, is_valid=is_subdomain(name))


def check_label(name: str, path: str, what: str) -> None:
    """Raise InvalidInput, "is not `what`" at `path`, unless a name is a DNS-1123 label."""
    remedy = "use lower case letters and digits, '-' between, 63 at most"
    _check(name, path, what, remedy, is_valid=is_label(name))


def check_label_key(key: str, path: str) -> None:
    """Raise InvalidInput at `path`, unless a text is a valid label key."""
    remedy = "write NAME or DOMAIN/NAME, the name of 63 at most"
    _check(key, path, "a label's key", remedy, is_valid=is_label_key(key))


def check_label_value(value: str, path: str) -> None:
    """Raise InvalidInput at `path`, unless a text is a valid label value."""
    remedy = "use letters, digits, '-', '_' and '.', 63 at most"
    _check(value, path, "a label's value", remedy, is_valid=is_label_value(value))


def _check(text: str, path: str, what: str, remedy: str, *, is_valid: bool) -> None:
    if not is_valid:
        raise InvalidInput(path, f"{shorten(text)!r} is not {what}", remedy)
