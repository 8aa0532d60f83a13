"""What a cluster is: quantities, pods, nodes, requests and the snapshot. Pure."""
