"""Kubernetes' own scheduler_perf, with kube-scheduler alone and with Reserver."""
