"""ProvisioningRequests are carried out (docs/adr/0052)."""
