"""The image, built without a registry, and run as a container is."""
