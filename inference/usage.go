package inference

import "math"

// Usage counts tokens.
type Usage struct {
	InputTokens  int64 `json:"input_tokens,omitempty"`
	OutputTokens int64 `json:"output_tokens,omitempty"`
	// CachedTokens is the share of InputTokens that a cache served.
	CachedTokens int64 `json:"cached_tokens,omitempty"`
	// ReasoningTokens is the share of OutputTokens that nobody gets to read.
	ReasoningTokens int64 `json:"reasoning_tokens,omitempty"`
}

// Add returns the sum. It stops at the largest int64 instead of wrapping, so that a budget cannot be escaped.
func (u Usage) Add(other Usage) Usage {
	return Usage{
		InputTokens:     sum(u.InputTokens, other.InputTokens),
		OutputTokens:    sum(u.OutputTokens, other.OutputTokens),
		CachedTokens:    sum(u.CachedTokens, other.CachedTokens),
		ReasoningTokens: sum(u.ReasoningTokens, other.ReasoningTokens),
	}
}

// Total returns input plus output tokens; cached tokens are part of the input.
func (u Usage) Total() int64 { return sum(u.InputTokens, u.OutputTokens) }

func sum(a, b int64) int64 {
	switch {
	case a > 0 && b > math.MaxInt64-a:
		return math.MaxInt64
	case a < 0 && b < math.MinInt64-a:
		return math.MinInt64
	}
	return a + b
}
