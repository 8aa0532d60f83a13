"""Upstream's own scheduling tests, with kube-scheduler alone and with Reserver."""
