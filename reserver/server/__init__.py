"""What answers calls: the extender, health, metrics and explanations over HTTP."""
