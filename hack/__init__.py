"""Tools for developers: the real control plane, benchmarks, release checks."""
