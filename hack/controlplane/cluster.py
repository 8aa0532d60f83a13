"""A whole control plane on loopback with temporary data, started in seconds."""

import secrets
import shutil
import signal
import ssl
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

from hack.controlplane import commands
from hack.controlplane.build import bin_dir, chosen, missing
from hack.controlplane.kubeconfig import write_kubeconfig
from hack.controlplane.kwok import kwok_command
from hack.controlplane.process import (
    HeldPort,
    Process,
    StartError,
    answers,
    start_on_free_port,
    stop,
)

READY_SECONDS = 60.0


class ControlPlane:
    """etcd, kube-apiserver, kube-controller-manager and kwok, as a context manager.

    Schedulers are started separately, as many as needed. All processes and data are removed after
    the `with` block, after a failed start, and when the process that started them dies.

    Args:
        version: minor version of Kubernetes; by default $KUBERNETES, or the newest.
        controller_manager: without it there are no controllers, no service account in a new
            namespace and no node leases, which reduces the cost of a benchmark with many nodes.
        audit_policy: audit policy file for `audit_log`.
        gates: feature gates to enable.
        apis: further API groups with their versions for kube-apiserver.
        kubelet: file with further configuration of KWOK's kubelets.

    Attributes:
        folder: temporary data; a test may put its own files there.
        token: the administrator's bearer token, also for the schedulers' /metrics.
    """

    folder: Path

    def __init__(
        self,
        *,
        version: str | None = None,
        controller_manager: bool = True,
        audit_policy: Path | None = None,
        gates: Sequence[str] = (),
        apis: Sequence[str] = (),
        kubelet: Path | None = None,
    ) -> None:
        self._version = version or chosen()
        self._controllers = controller_manager
        self._audit_policy = audit_policy
        self._features = commands.features(gates)
        self._apis = [f"--runtime-config={api}=true" for api in apis]
        self._kubelet = kubelet
        self._running: dict[str, Process] = {}
        self._etcd_port = HeldPort()
        self._port = HeldPort()  # Of kube-apiserver. Both may be started again.
        self.token = secrets.token_hex(16)

    def __enter__(self) -> Self:
        """Start all programs except for schedulers.

        Raises:
            StartError: the binaries are not built, or a program did not become ready.
        """
        if missing(self._version):
            message = "no control plane here yet: run `python3 hack/controlplane/build.py`"
            raise StartError(message)
        self.folder = Path(tempfile.mkdtemp(prefix="reserver-controlplane-"))
        self._files = commands.Files(self.folder, bin_dir(self._version))
        try:
            self._start()
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Stop all programs and remove their data, logs included."""
        self._stop()

    @property
    def kubeconfig(self) -> Path:
        """Kubeconfig (mode 0600) of a cluster administrator."""
        return self._files.kubeconfig

    @property
    def url(self) -> str:
        """URL of kube-apiserver."""
        return f"https://127.0.0.1:{self._port.number}"

    @property
    def etcd_url(self) -> str:
        """URL of etcd for clients, JSON gateway included."""
        return f"http://127.0.0.1:{self._etcd_port.number}"

    @property
    def ca_file(self) -> Path:
        """The CA certificate of kube-apiserver and the schedulers."""
        return self._files.ca

    @property
    def audit_log(self) -> Path:
        """Audit log of kube-apiserver; with an `audit_policy` only."""
        return self._files.audit_log

    @property
    def logs_dir(self) -> Path:
        """Folder with a file for each program, NAME.log, until the end of the `with` block."""
        return self._files.logs

    @property
    def pids(self) -> dict[str, int]:
        """Process ids of the running programs, by name."""
        return {name: process.pid for name, process in self._running.items()}

    def is_alive(self, name: str) -> bool:
        """Return whether a program that was started, and not stopped, still runs.

        Raises:
            KeyError: no program of that name was started, or it was stopped.
        """
        return self._running[name].alive

    def start_scheduler(
        self, config: Path, name: str = "kube-scheduler", *, leader_elect: bool = False
    ) -> int:
        """Start a kube-scheduler and return the port of its HTTPS /metrics once it is ready.

        Args:
            config: its complete KubeSchedulerConfiguration (see `render_scheduler_config`).
            name: its name here, in `stop_scheduler` and in `logs_dir`.
            leader_elect: whether it elects a leader as in `config`; else a restart does not wait
                for the previous lease.

        Raises:
            StartError: it did not become ready, or one of this name is running.
        """
        if name in self._running:
            message = f"{name} runs already"
            raise StartError(message)
        return start_on_free_port(
            partial(self._start_scheduler, config, name, leader_elect=leader_elect)
        )

    def stop_scheduler(self, name: str = "kube-scheduler") -> None:
        """Stop the kube-scheduler of that name."""
        stop([self._running.pop(name)])

    def kill_scheduler(self, name: str) -> None:
        """End the kube-scheduler of that name as a crash does: it releases no lease."""
        process = self._running.pop(name)
        process.signal(signal.SIGKILL)
        process.wait(5)

    def signal(self, name: str, number: signal.Signals) -> None:
        """Send a signal to a program; SIGSTOP makes it stand still."""
        self._running[name].signal(number)

    def restart_apiserver(self) -> None:
        """End kube-apiserver and start it again: same port, same data, same credentials."""
        self.stop_apiserver()
        self.start_apiserver()

    def stop_apiserver(self) -> None:
        """End kube-apiserver; all other programs stay and lose their connections."""
        # It would wait for remaining watches without end, so it is killed after a second.
        stop([self._running.pop("kube-apiserver")], grace=1)

    def start_apiserver(self, seconds: float = READY_SECONDS) -> None:
        """Start kube-apiserver, also after `stop_apiserver`; return when it is ready.

        Raises:
            StartError: that took longer than `seconds`; it reads all objects first.
        """
        port = self._port.number
        command = commands.apiserver(
            self._files,
            self._etcd_port.number,
            port,
            controllers=self._controllers,
            audit_policy=self._audit_policy,
            more=[*self._features, *self._apis],
        )
        self._run("kube-apiserver", command, lambda: self._gets(port, "/readyz"), seconds)

    def restart_controllers(self) -> None:
        """End kube-controller-manager and start it again."""
        stop([self._running.pop("kube-controller-manager")])
        self._start_controllers()

    def _start(self) -> None:
        files = self._files
        files.logs.mkdir()
        files.tokens.write_text(f'{self.token},admin,admin,"system:masters"\n')
        _make_key(files.service_account_key)
        self._start_etcd()
        self.start_apiserver()
        cluster = {"server": self.url, "certificate-authority": str(files.ca)}
        write_kubeconfig(files.kubeconfig, cluster, self.token)
        kwok = kwok_command(
            files.kubeconfig,
            version=self._version,
            leases=self._controllers,
            config=self._kubelet,
        )
        self._run("kwok", kwok, lambda: True)  # it has no health check; nodes become Ready
        if self._controllers:
            self._start_controllers()

    def _stop(self) -> None:
        # Each server waits for its clients to disconnect, so clients are stopped first.
        servers = [self._running.pop(name, None) for name in ("kube-apiserver", "etcd")]
        stop(self._running.values())
        self._running.clear()
        for server in filter(None, servers):
            stop([server])
        self._port.close()
        self._etcd_port.close()
        shutil.rmtree(self.folder)

    def _start_etcd(self) -> None:
        port = self._etcd_port.number
        self._run("etcd", commands.etcd(self._files, port), lambda: answers(port, "/health"))

    def _start_controllers(self) -> None:
        # Without this account pods are refused, and a first test would have to wait.
        account = "/api/v1/namespaces/default/serviceaccounts/default"
        command = commands.controller_manager(self._files, self._features)
        port = self._port.number
        self._run("kube-controller-manager", command, lambda: self._gets(port, account))

    def _start_scheduler(self, config: Path, name: str, port: int, *, leader_elect: bool) -> int:
        command = commands.scheduler(
            self._files, config, port, leader_elect=leader_elect, more=self._features
        )
        self._run(name, command, lambda: self._gets(port, "/readyz"))
        return port

    def _run(
        self,
        name: str,
        command: commands.Command,
        ready: Callable[[], bool],
        seconds: float = READY_SECONDS,
    ) -> None:
        process = Process(command, self.logs_dir / f"{name}.log")
        self._running[name] = process
        try:
            process.wait_until(ready, seconds)
        except BaseException:
            stop([self._running.pop(name)])
            raise

    def _gets(self, port: int, path: str) -> bool:
        try:
            context = ssl.create_default_context(cafile=self.ca_file)
        except (FileNotFoundError, ssl.SSLError):  # kube-apiserver creates it at its first start
            return False
        return answers(port, path, context=context, token=self.token)


def _make_key(path: Path) -> None:
    """Create a private key with openssl, as Python's standard library cannot."""
    command = ["openssl", "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", str(path)]
    subprocess.run(command, check=True, capture_output=True)
