"""A real metrics-server for the end-to-end tests of rebalancing."""
