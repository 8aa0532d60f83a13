"""The Kubernetes API: its client, watches, objects, leases, events and work queues."""
