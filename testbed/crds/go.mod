// The Go modules whose CustomResourceDefinitions the tests install. No Go code is here, so `go mod tidy` would empty this file.
// For another version: change it here, then run `go mod download` with the names of both modules, which writes go.sum.
module dogwatch.dev/crds

go 1.26.0

require (
	sigs.k8s.io/cluster-api v1.14.2
	sigs.k8s.io/karpenter v1.9.0
)
