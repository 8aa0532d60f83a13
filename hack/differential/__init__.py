"""Does `reserver.scheduling.fit` agree with the real kube-scheduler?"""
