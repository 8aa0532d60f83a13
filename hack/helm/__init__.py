"""Helm, built from its Go module: what lints, renders and installs the chart in the tests."""
