"""The written forms of specs, quotas, prices, accounts and archives: JSON, YAML and data keys."""
