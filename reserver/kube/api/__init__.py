"""Calls to the API server: who Reserver is to it, and the writes that decisions want."""
