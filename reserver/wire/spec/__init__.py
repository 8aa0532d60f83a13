"""What people and managers write: reservations and quotas, in each of their forms."""
