"""A few of these tests are properties."""

from tests import hypothesis_profiles

hypothesis_profiles.load("default")
