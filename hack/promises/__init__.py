"""Would notice a broken promise: reads the recorded history of a cluster, reports each violation.

Independent of Reserver: nothing here imports it, so that one mistake cannot hide another.
"""
