"""A small scheduler that looks like kube-scheduler to an extender.

It filters, calls its extender and words refusals as kube-scheduler does. It has no sampling of
nodes, no preemption and no growing back-off: tests of those run on the real kube-scheduler.
"""
