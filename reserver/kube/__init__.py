"""The API server: client, watch caches, the store, and the writes that decisions want."""
