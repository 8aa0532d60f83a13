"""The cluster as values: quantities, pods, nodes, requests and the snapshot. Pure."""
