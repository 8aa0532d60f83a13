"""The admission webhooks for new and resized pods, and their certificates."""
