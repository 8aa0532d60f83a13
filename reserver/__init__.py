"""Reserver: capacity reservations, rebalancing and safe moves for the stock kube-scheduler."""
