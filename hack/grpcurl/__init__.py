"""grpcurl, built from its Go module: a gRPC client that nobody here wrote."""
