"""Settings: where Reserver runs, which stores are its own, how the use of holds is judged."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated

from reserver.errors import ConfigurationError
from reserver.settings.flags import InFile, check_name, check_percent, setting
from reserver.settings.listening import Listening
from reserver.stores.codec import prices

_file = partial(setting, panel="Configuration")


@dataclass(frozen=True, slots=True, kw_only=True)
class Accounting(Listening):
    """How the use of holds is judged and priced."""

    warn_use_below: Annotated[
        str,
        setting(
            "The share of a hold, such as 20%, below which its use in 24 hours is reported; none: "
            "never.",
            metavar="PERCENT",
            check=check_percent,
            in_file=InFile("warnUseBelow", is_live=True),
        ),
    ] = "20%"
    prices: Annotated[
        str,
        setting(
            "What an hour of a core, a GiB or a piece costs, such as cpu=0.03,currency=EUR.",
            metavar="TABLE",
            check=prices.check,
            in_file=InFile("prices", is_live=True, read=prices.read_table, show=prices.show_table),
        ),
    ] = prices.NONE


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
    config: Annotated[
        Path | None,
        _file("ReserverConfiguration (docs/configuration.md), read again when it changes."),
    ] = None
    kubeconfig: Annotated[
        Path | None, _file("Default: $KUBECONFIG, the pod's service account, ~/.kube/config.")
    ] = None
    leader_elect: Annotated[
        bool,
        setting(
            "Stand by while another Reserver holds the Lease of this namespace.",
            in_file=InFile("leaderElection.leaderElect"),
        ),
    ] = False
    pod_name: Annotated[
        str,
        _file("Own pod, which a leader labels reserver.io/serving.", metavar="NAME"),
    ] = ""
    namespace: Annotated[
        str,
        _file(
            'Namespace whose ConfigMaps labelled reserver.io/store: "true" are stores.',
            metavar="NAME",
            check=check_name,
        ),
    ] = "reserver-system"
    configmaps: Annotated[
        tuple[tuple[str, str], ...],
        setting(
            "Another store ConfigMap, with the label or without.",
            metavar="NAMESPACE/NAME",
            read=_parse_configmap,
            check=_check_names,
            in_file=InFile("storeConfigMaps"),
        ),
    ] = ()
    exempt_namespaces: Annotated[
        tuple[str, ...],
        setting(
            "Another namespace, beside kube-system, whose pods of system priority (2,000,000,000 "
            "and above) may take held room.",
            metavar="NAMESPACE",
            check=check_name,
            in_file=InFile("exemptNamespaces", is_live=True),
        ),
    ] = ()
    crd: Annotated[
        bool,
        setting(
            "Be ready only once the CRD reservations.reserver.io exists.",
            in_file=InFile("requireCRD"),
        ),
    ] = True
