"""The cost of TLS and HTTP/2 between kube-scheduler and Reserver."""
