"""The arguments of a policy's plugins: one struct each, as the file has them, with its checks.

Names, meaning and defaults are those of kubernetes-sigs/descheduler v0.36.0 (``types.go``,
``defaults.go`` and ``validation.go`` below ``pkg/framework/plugins``), and of koord-descheduler.
"""
