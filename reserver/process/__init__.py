"""One process: its parts, put together, with metrics, traces and readiness."""
