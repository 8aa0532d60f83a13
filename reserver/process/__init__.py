"""The parts of one process, put together, with metrics, traces and readiness."""
