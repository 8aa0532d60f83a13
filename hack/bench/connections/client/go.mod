// A client that calls an extender as kube-scheduler does.
module reserver.io/hack/bench/connections/client

go 1.26.0
