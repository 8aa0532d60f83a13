"""A tenant that continuously writes the costliest objects, and its cost for other tenants."""
