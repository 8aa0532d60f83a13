"""The arguments of the plugins of a policy, with their defaults: upstream's, and those of ours.

Names, meaning and defaults are those of kubernetes-sigs/descheduler v0.36.0 (``types.go`` and
``defaults.go`` below ``pkg/framework/plugins``). A value is what its plugin works with: label
selectors are parsed, a priority class is its number, deprecated fields have become what they stand
for. What is absent in the file and matches everything is `EVERYTHING` here.
"""
