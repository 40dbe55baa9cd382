package engine

// DecodeSections checks spec against e and returns its sections as a run would
// hand them to phase.NewAgentInfo.
func DecodeSections(e *Engine, spec AgentSpec) (map[string]any, error) {
	return e.catalog.check(spec)
}
