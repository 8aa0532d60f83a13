"""How soon waiting pods are bound when a hold ends, and what that costs kube-scheduler."""
