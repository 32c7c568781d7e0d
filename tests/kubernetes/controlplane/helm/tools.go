//go:build tools

// Package tools names the programs this module builds, so that go.sum pins what they need.
package tools

import (
	_ "helm.sh/helm/v3/cmd/helm"
)
