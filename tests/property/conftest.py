"""Hypothesis draws as many examples as the step of CI wants."""

from tests.drawing import load_profile

load_profile()
