"""The scheduler extender: kube-scheduler's calls, bindings, and the loops that follow from them."""
