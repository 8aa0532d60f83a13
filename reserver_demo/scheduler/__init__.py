"""A small scheduler that an extender takes for kube-scheduler.

It filters, calls its extender and words refusals as kube-scheduler does. It does not sample nodes,
preempt, or back off longer each time: the tests of those run on the real one.
"""
