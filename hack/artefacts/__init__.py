"""All that a release publishes, in dist/: the same commit gives the same bytes."""
