"""All that takes long, before a release."""
