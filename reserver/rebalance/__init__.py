"""Which pods sit in the wrong place, and where each would go. Pure."""
