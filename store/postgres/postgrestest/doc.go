// Package postgrestest starts Postgres servers for tests, out of the programs that the
// system has installed: with a folder of their own, on a socket there, and with ways to
// kill them, to add standbys and to promote one:
//
//	server, err := postgrestest.Start(ctx, postgrestest.Options{})
//	if err != nil {
//		return err
//	}
//	defer server.Close()
//	journal, err := postgres.Open(ctx, server.DSN(), postgres.Options{})
//
// It runs on Unix only. A server that the tests leave running ends with their process.
// Postgres refuses to run as root, so for root the programs run as the user of
// [Options.User].
package postgrestest
