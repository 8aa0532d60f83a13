// What Kubernetes' own e2e tests need beside ../../controlplane/1.36/go.mod; no version there changes.
require (
	github.com/onsi/ginkgo/v2 v2.28.1
	github.com/onsi/gomega v1.39.1
	go.uber.org/goleak v1.3.0
	golang.org/x/mod v0.32.0
)
