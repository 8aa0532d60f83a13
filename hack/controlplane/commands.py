"""The command lines of the control plane's programs, and the files that they share."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

Command = Sequence[str | Path]


@dataclass(frozen=True)
class Files:
    """The temporary files of one control plane.

    Args:
        folder: folder for data, logs and credentials.
        binaries: folder with the built binaries.
    """

    folder: Path
    binaries: Path

    @property
    def kubeconfig(self) -> Path:
        """Kubeconfig of the administrator."""
        return self.folder / "kubeconfig"

    @property
    def tokens(self) -> Path:
        """kube-apiserver's users: lines of token, name, uid, groups."""
        return self.folder / "tokens.csv"

    @property
    def ca(self) -> Path:
        """The certificate that kube-apiserver creates for itself; the schedulers use it too."""
        return self.folder / "certificates" / "apiserver.crt"

    @property
    def service_account_key(self) -> Path:
        """The key that signs the tokens of service accounts."""
        return self.folder / "service-account.key"

    @property
    def audit_log(self) -> Path:
        """Audit log: a JSON object for each audited stage of a request."""
        return self.folder / "audit.log"

    @property
    def logs(self) -> Path:
        """Folder with a log file for each program."""
        return self.folder / "logs"


def etcd(files: Files, port: int) -> Command:
    """Return the command of etcd with one member, for clients on loopback `port`."""
    url = f"http://127.0.0.1:{port}"
    return [
        files.binaries / "etcd",
        f"--data-dir={files.folder / 'etcd'}",
        f"--listen-client-urls={url}",
        f"--advertise-client-urls={url}",
        "--listen-peer-urls=http://127.0.0.1:0",
        "--unsafe-no-fsync",  # a test's data need not survive a power failure
        f"--quota-backend-bytes={8 << 30}",  # benchmarks outgrow the default of 2 GiB
        # As in kubeadm. Else the watch of a collection without writes may receive no event: the API
        # server sends no bookmark from before the watch began.
        "--watch-progress-notify-interval=5s",
    ]


def _audit_flags(files: Files, policy: Path) -> Command:
    return [
        f"--audit-policy-file={policy}",
        f"--audit-log-path={files.audit_log}",
        "--audit-log-maxsize=100000",  # one file, however long the tests take; 0 is 100 MB
    ]


def apiserver(
    files: Files,
    etcd_port: int,
    port: int,
    *,
    controllers: bool,
    audit_policy: Path | None,
    more: Command = (),
) -> Command:
    """Return the command of kube-apiserver with RBAC on loopback `port`.

    Args:
        files: files of this control plane.
        etcd_port: port of etcd on loopback.
        port: port to listen on.
        controllers: whether kube-controller-manager runs.
        audit_policy: audit policy file; None for no audit log.
        more: further flags.
    """
    key = files.service_account_key
    # Without controllers no taint is removed from a node, and no namespace gets a service account.
    alone = (
        [] if controllers else ["--disable-admission-plugins=TaintNodesByCondition,ServiceAccount"]
    )
    audited: Command = _audit_flags(files, audit_policy) if audit_policy else []
    return [
        files.binaries / "kube-apiserver",
        f"--etcd-servers=http://127.0.0.1:{etcd_port}",
        "--bind-address=127.0.0.1",
        "--advertise-address=127.0.0.1",
        "--endpoint-reconciler-type=none",  # no Endpoints object may hold a loopback address
        f"--secure-port={port}",
        f"--cert-dir={files.ca.parent}",
        f"--token-auth-file={files.tokens}",
        "--authorization-mode=RBAC",
        "--allow-privileged",  # As in kubeadm: some of upstream's tests create such pods.
        "--service-cluster-ip-range=10.0.0.0/24",
        "--kubelet-preferred-address-types=InternalIP",  # node names cannot be resolved
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={key}",
        f"--service-account-signing-key-file={key}",
        # Tests and benchmarks measure their subject, not the API server's throttling.
        "--enable-priority-and-fairness=false",
        "--max-requests-inflight=0",
        "--max-mutating-requests-inflight=0",
        *alone,
        *audited,
        *more,
    ]


def controller_manager(files: Files, more: Command = ()) -> Command:
    """Return the command of kube-controller-manager, without a port."""
    return [
        files.binaries / "kube-controller-manager",
        f"--kubeconfig={files.kubeconfig}",
        f"--service-account-private-key-file={files.service_account_key}",
        f"--root-ca-file={files.ca}",
        # ttl annotates each node again as a cluster grows, which retries refused pods; the
        # publisher refuses our certificate because it is no bare CA, and logs that endlessly.
        "--controllers=*,-ttl-controller,-kube-apiserver-serving-clustertrustbundle-publisher-controller",
        "--leader-elect=false",
        "--secure-port=0",
        # The defaults of 20 and 30 a second make 300 new nodes wait for the removal of taints.
        "--kube-api-qps=1000",
        "--kube-api-burst=2000",
        *more,
    ]


def features(gates: Sequence[str]) -> Command:
    """Return the flags that enable feature gates, for any program of Kubernetes."""
    return [f"--feature-gates={gate}=true" for gate in gates]


def scheduler(
    files: Files, config: Path, port: int, *, leader_elect: bool, more: Command = ()
) -> Command:
    """Return the command of kube-scheduler with HTTPS /readyz and /metrics on loopback `port`."""
    return [
        files.binaries / "kube-scheduler",
        f"--config={config}",
        f"--leader-elect={str(leader_elect).lower()}",
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        f"--tls-cert-file={files.ca}",
        f"--tls-private-key-file={files.ca.with_suffix('.key')}",
        f"--authentication-kubeconfig={files.kubeconfig}",
        "--authentication-skip-lookup",  # of client certificates: our users have tokens
        f"--authorization-kubeconfig={files.kubeconfig}",
        *more,
    ]
