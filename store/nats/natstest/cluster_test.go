//go:build servers

package natstest_test

import (
	"testing"

	"github.com/ddd26017/fixpoint/store/nats/natstest"
	"github.com/ddd26017/fixpoint/store/storetest"
)

// Capability B6, B7: the store on a NATS cluster of three.
func TestConformanceOfCluster(t *testing.T) {
	t.Parallel()
	storetest.Run(t, opener(natstest.Start(t, 3), 3))
}
