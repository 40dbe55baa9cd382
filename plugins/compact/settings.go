package compact

import (
	"fmt"
	"regexp"
	"time"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/inference"
)

// Settings is the content of the section. Tokens are estimates, see BytesPerToken.
type Settings struct {
	// MaxTokens is the size above which a conversation is compacted by itself; 0 means
	// on demand only. The default is 100000.
	MaxTokens int `json:"max_tokens"`
	// KeepRecent is how many of the latest messages stay as they are, at least; a tool
	// call and its results stay together. The default is 8.
	KeepRecent int `json:"keep_recent"`
	// MinSaving is how many tokens a compaction that nobody asked for has to save. The
	// default is 2000.
	MinSaving int `json:"min_saving"`
	// SummaryTokens is how long a summary should be at most. The default is 1000.
	SummaryTokens int `json:"summary_tokens"`
	// Timeout bounds one call of the summarizer, as time.ParseDuration reads it. The
	// default is "1m".
	Timeout string `json:"timeout"`
	// FallbackAfter is the number of automatic attempts in a row that came to nothing,
	// after which Digest at once takes the place of a summary that fails, until one
	// succeeds; 0 means never. The default is 3.
	FallbackAfter int `json:"fallback_after"`
	// BytesPerToken is what sizes are estimated with. The default is 4.
	BytesPerToken int `json:"bytes_per_token"`
	// Instructions tell the summarizer what matters, unless the action brings its own.
	Instructions string `json:"instructions"`
	// Transient is a regular expression: older system messages that it matches are
	// summarised like others, since they were true when they were written only. The
	// default "" matches none.
	Transient string `json:"transient"`
}

// Section is the section that holds the settings.
var Section = engine.NewConfigKey(Name, engine.ConfigOptions[Settings]{
	Default: func() Settings {
		return Settings{MaxTokens: 100_000, KeepRecent: 8, MinSaving: 2000, SummaryTokens: 1000, Timeout: "1m", FallbackAfter: 3, BytesPerToken: 4}
	},
	Check: Settings.Validate,
})

// Validate returns what is wrong with the settings, or nil.
func (s Settings) Validate() error {
	for _, n := range []struct {
		name         string
		value, least int
	}{
		{"max_tokens", s.MaxTokens, 0}, {"keep_recent", s.KeepRecent, 1}, {"min_saving", s.MinSaving, 1},
		{"summary_tokens", s.SummaryTokens, 1}, {"fallback_after", s.FallbackAfter, 0}, {"bytes_per_token", s.BytesPerToken, 1},
	} {
		if n.value < n.least {
			return fmt.Errorf("compact: %s is %d; use %d or more", n.name, n.value, n.least)
		}
	}
	if d, err := time.ParseDuration(s.Timeout); err != nil || d <= 0 {
		return fmt.Errorf("compact: timeout is %q; use a positive duration such as \"1m\"", s.Timeout)
	}
	if _, err := regexp.Compile(s.Transient); err != nil {
		return fmt.Errorf("compact: transient is no regular expression as package regexp takes it: %w", err)
	}
	return nil
}

// passing returns a function that reports whether a system message is transient.
func (s Settings) passing() func(text string) bool {
	re, err := regexp.Compile(s.Transient)
	if s.Transient == "" || err != nil { // Validate refused it
		return func(string) bool { return false }
	}
	return re.MatchString
}

func (s Settings) deadline() time.Duration {
	d, _ := time.ParseDuration(s.Timeout) // Validate refused others
	return d
}

const (
	messageTokens = 4    // what a message costs besides its content
	mediaTokens   = 1000 // an image or a file, whatever its size in bytes
)

// tokens estimates what messages cost the model.
func (s Settings) tokens(messages ...inference.Message) int {
	sum := 0
	for _, m := range messages {
		size := max(len(m.Text), len(m.Result.Content))
		for _, c := range m.ToolCalls {
			size += len(c.Name) + len(c.Args)
		}
		for _, p := range m.Parts {
			size += len(p.Text) + len(p.Extra)
			if p.URI != "" || len(p.Data) > 0 {
				sum += mediaTokens
			}
		}
		sum += messageTokens + (size+s.BytesPerToken-1)/s.BytesPerToken
	}
	return sum
}
