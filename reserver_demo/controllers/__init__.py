"""The controllers of the embedded cluster: Jobs, ReplicaSets, Deployments, budgets, garbage.

What each decides is a function of the objects; `loop` carries it out in the API server's store.
"""
