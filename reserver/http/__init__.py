"""The HTTP listener: connections, access, TLS and limits."""
