// What Kubernetes' own e2e tests need beside ../../controlplane/1.37/go.mod; no version there changes.
require (
	github.com/onsi/ginkgo/v2 v2.32.0
	github.com/onsi/gomega v1.40.0
	go.uber.org/goleak v1.3.0
	golang.org/x/mod v0.37.0
)
