"""The page of `reserver ui`, on loopback: holds by node and time."""
