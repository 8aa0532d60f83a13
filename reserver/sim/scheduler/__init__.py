"""A loop that does what kube-scheduler does, as far as an extender can see it."""
