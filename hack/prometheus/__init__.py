"""A real Prometheus for the end-to-end tests of rebalancing."""
