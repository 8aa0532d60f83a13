"""Reserver: capacity reservations, rebalancing and safe moves for the stock kube-scheduler."""

DISTRIBUTION = "kube-reserver"
"""Its name where packages are listed; `reserver` there is somebody else's."""
