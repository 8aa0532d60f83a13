"""The controllers of the embedded cluster: Jobs, ReplicaSets, Deployments, budgets, garbage.

Each decision is a pure function of the objects; `loop` writes it to the API server's store.
"""
