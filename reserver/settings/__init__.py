"""The settings of the long-running commands, and their flags."""
