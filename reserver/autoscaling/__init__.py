"""CapacityBuffers and scale-down guards, which node autoscalers read."""
