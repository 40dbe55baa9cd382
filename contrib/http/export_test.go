package serve

// Routes returns how many routes there are.
func Routes(s *Server) int { return len(s.table()) }
