"""The arguments of a policy's plugins: one struct for each plugin, with its checks.

Names, meaning and defaults follow kubernetes-sigs/descheduler v0.36.0 (``types.go``,
``defaults.go`` and ``validation.go`` below ``pkg/framework/plugins``) and koord-descheduler.
"""
