"""Settings: where Reserver runs, which stores are its own, how the use of holds is judged."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from reserver.errors import ConfigurationError
from reserver.settings.flags import InFile, check_name, check_percent, setting
from reserver.settings.listening import Listening
from reserver.stores.codec import prices

_file = partial(setting, panel="Configuration")


@dataclass(frozen=True, slots=True, kw_only=True)
class Accounting(Listening):
    """How the use of holds is judged and priced."""

    warn_use_below: str = setting(
        "The share of a hold, such as 20%, below which its use in 24 hours is reported; none: "
        "never.",
        default="20%",
        metavar="PERCENT",
        check=check_percent,
        in_file=InFile("warnUseBelow", is_live=True),
    )
    prices: str = setting(
        "What an hour of a core, a GiB or a piece costs, such as cpu=0.03,currency=EUR.",
        default=prices.NONE,
        metavar="TABLE",
        check=prices.check,
        in_file=InFile("prices", is_live=True, read=prices.read_table, show=prices.show_table),
    )


def _parse_configmap(flag: str, text: str) -> tuple[str, str]:
    namespace, slash, name = text.partition("/")
    if not (namespace and slash and name) or "/" in name:
        problem = f"{flag}: {text!r} is not of the form NAMESPACE/NAME"
        raise ConfigurationError(f"{problem}; write e.g. shop/holds")
    return namespace, name


def _check_names(flag: str, parts: tuple[str, str]) -> None:
    for name in parts:
        check_name(flag, name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation(Accounting):
    """Where Reserver runs, and which stores are its own.

    Attributes:
        given: the fields of which a flag or a variable was given.
    """

    given: frozenset[str] = field(default=frozenset(), repr=False)
    config: Path | None = _file(
        "ReserverConfiguration (docs/configuration.md), read again when it changes."
    )
    kubeconfig: Path | None = _file(
        "Default: $KUBECONFIG, the pod's service account, ~/.kube/config."
    )
    leader_elect: bool = setting(
        "Stand by while another Reserver holds the Lease of this namespace.",
        default=False,
        in_file=InFile("leaderElection.leaderElect"),
    )
    pod_name: str = _file(
        "Own pod, which a leader labels reserver.io/serving.", default="", metavar="NAME"
    )
    namespace: str = _file(
        'Namespace whose ConfigMaps labelled reserver.io/store: "true" are stores.',
        default="reserver-system",
        metavar="NAME",
        check=check_name,
    )
    configmaps: tuple[tuple[str, str], ...] = setting(
        "Another store ConfigMap, with the label or without.",
        default=(),
        metavar="NAMESPACE/NAME",
        read=_parse_configmap,
        check=_check_names,
        in_file=InFile("storeConfigMaps"),
    )
    exempt_namespaces: tuple[str, ...] = setting(
        "Another namespace, beside kube-system, whose pods of system priority (2,000,000,000 "
        "and above) may take held room.",
        default=(),
        metavar="NAMESPACE",
        check=check_name,
        in_file=InFile("exemptNamespaces", is_live=True),
    )
    crd: bool = setting(
        "Be ready only once the CRD reservations.reserver.io exists.",
        default=True,
        in_file=InFile("requireCRD"),
    )
