"""A million inputs for everything that reads what others wrote."""
