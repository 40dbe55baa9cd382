// Package natstest starts NATS servers for tests, in the process of the test or in child
// processes that can be killed:
//
//	server := natstest.Start(t, 1)
//	journal, err := nats.Open(ctx, server.URL(), nats.Options{Replicas: 1, AssumeSynced: true})
//
// It is a module of its own, so that store/nats does not link the server.
package natstest
