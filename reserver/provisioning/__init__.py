"""ProvisioningRequests of Reserver's class, which become reservations (docs/adr/0052)."""
