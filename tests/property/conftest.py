"""As many examples as take half a minute, unless `RESERVER_HYPOTHESIS` says another profile."""

from tests import hypothesis_profiles

hypothesis_profiles.load("quick")
