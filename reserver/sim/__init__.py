"""An embedded cluster: a subset of the Kubernetes API server, a kubelet and a scheduler loop.

For the demo and for fast tests. It speaks the real API and the real extender protocol over HTTP;
what it covers is held to the real server by the contract tests.
"""
