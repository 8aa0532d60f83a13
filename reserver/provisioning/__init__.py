"""ProvisioningRequests of Reserver's class: how they become reservations (docs/adr/0052)."""
