"""Policies as they are written."""

from __future__ import annotations

from reserver.rebalance.policy_reader import PolicyReading, read

HEAD = "apiVersion: descheduler/v1alpha2\nkind: DeschedulerPolicy\n"


def reading(text: str) -> PolicyReading:
    return read(text.encode(), {"high": 1_000_000, "extreme": 2_000_001_000}.get)


def configured(plugin: str, args: str, point: str = "") -> str:
    enabled = f"\n  plugins: {{{point}: {{enabled: [{plugin}]}}}}" if point else ""
    config = f"pluginConfig:\n  - name: {plugin}\n    args: {args}"
    return f"{HEAD}profiles:\n- name: p\n  {config}{enabled}"


JSON = '{"apiVersion":"descheduler/v1alpha2","kind":"DeschedulerPolicy"'
