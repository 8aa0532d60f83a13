"""Watching the API server: lists, watches, and what may have been missed."""
