package mcp_test

// program is what the test binary does as a server's program.
func program(mode string) int { return 1 }
