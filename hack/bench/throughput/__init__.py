"""The cost of a scheduled pod on the real control plane, next to kube-scheduler alone."""
