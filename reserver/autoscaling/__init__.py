"""CapacityBuffers and scale-down guards: what node autoscalers read from Reserver."""
