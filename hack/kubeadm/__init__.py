"""The real kubeadm, for a test of the static pod."""
