"""The gRPC API: the contract of proto/reserver/v1 on the state, the store and the extender."""
