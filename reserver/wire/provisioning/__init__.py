"""ProvisioningRequests and PodTemplates on the wire."""
