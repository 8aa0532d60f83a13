"""A Prometheus that scrapes, for as long as a test needs it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import yaml

from hack.controlplane.process import Process, answers, start_on_free_port, stop
from hack.go_tool import PROMETHEUS


@contextmanager
def scraping(folder: Path, *targets: str, rules: Path | None = None) -> Iterator[str]:
    """Scrape targets each second; yield the URL of the Prometheus.

    Args:
        folder: for its data and log.
        targets: ADDRESS:PORT of each.
        rules: a file of rules that it evaluates each second.
    """
    scrape = {"job_name": "reserver", "honor_labels": True, "scrape_interval": "1s"}
    scrape |= {"scrape_timeout": "1s", "static_configs": [{"targets": list(targets)}]}
    document = {"scrape_configs": [scrape], "global": {"evaluation_interval": "1s"}}
    document |= {"rule_files": [str(rules)]} if rules else {}
    (folder / "prometheus.yml").write_text(yaml.safe_dump(document))

    def start(port: int) -> tuple[Process, int]:
        command: list[str | Path] = [
            PROMETHEUS.build(),
            f"--config.file={folder / 'prometheus.yml'}",
            f"--storage.tsdb.path={folder / 'data'}",
            f"--web.listen-address=127.0.0.1:{port}",
        ]
        process = Process(command, folder / "prometheus.log")
        process.wait_until(lambda: answers(port, "/-/ready"))
        return process, port

    process, port = start_on_free_port(start)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        stop([process])
