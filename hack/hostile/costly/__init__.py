"""The entries of the catalogue, by what the tenant writes."""
