"""What TLS and HTTP/2 cost between kube-scheduler and Reserver."""
