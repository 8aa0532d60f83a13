// What Kubernetes' own e2e tests need beside ../../controlplane/1.35/go.mod; no version there changes.
require (
	github.com/onsi/ginkgo/v2 v2.27.2
	github.com/onsi/gomega v1.38.2
	go.uber.org/goleak v1.3.0
	golang.org/x/mod v0.29.0
)
