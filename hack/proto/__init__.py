"""Generates Python code and the reference from the contracts in proto/."""
