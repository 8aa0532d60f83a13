"""The scheduler extender: kube-scheduler's calls, bindings, and their background loops."""
