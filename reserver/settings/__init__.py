"""The settings of the commands that run for long, and their flags."""
