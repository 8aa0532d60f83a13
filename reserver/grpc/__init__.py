"""The gRPC API: implements proto/reserver/v1 with the state, the stores and the extender."""
