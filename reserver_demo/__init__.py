"""An embedded cluster: a subset of the Kubernetes API server, a kubelet and a small scheduler.

For the demo and for fast tests. It speaks the real API and the real extender protocol over HTTP;
the contract tests compare it with the real server.
"""
