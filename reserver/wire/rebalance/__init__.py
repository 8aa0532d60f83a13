"""What rebalancing reads: objects of a cluster and policies, from bytes to values."""
