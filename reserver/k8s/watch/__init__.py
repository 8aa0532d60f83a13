"""Watches of the API server: lists, watches, and the lag of a view."""
