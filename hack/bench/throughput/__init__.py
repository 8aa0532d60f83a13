"""What a scheduled pod costs, on the real control plane, beside kube-scheduler alone."""
