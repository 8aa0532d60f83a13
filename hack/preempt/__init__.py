"""Priority storms on the real kube-scheduler: is anybody evicted for room that stays held?"""
