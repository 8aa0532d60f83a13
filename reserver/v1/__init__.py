"""The gRPC contract, generated from proto/reserver/v1 by `make proto`."""
