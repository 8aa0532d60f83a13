"""A storm of priorities: pods that would evict others on nodes that are partly held."""
