"""How a ProvisioningRequest of Reserver's class becomes reservations (docs/adr/0052)."""
