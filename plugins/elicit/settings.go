package elicit

import (
	"fmt"
	"slices"
	"time"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/gate"
)

// Unattended says what becomes of a question without a default value that nobody
// answers.
type Unattended string

// The ways; the zero one cancels.
const (
	UnattendedCancel  Unattended = "cancel"
	UnattendedDecline Unattended = "decline"
	UnattendedWait    Unattended = "wait" // the run waits; at the end of a lifetime the question is cancelled
)

func (u Unattended) standard() gate.Default {
	switch u {
	case UnattendedDecline:
		return gate.DefaultNo
	case UnattendedWait:
		return gate.NoDefault
	default:
		return gate.DefaultCancel
	}
}

// Settings is the content of the section.
type Settings struct {
	// Lifetime is how long a question stands, as time.ParseDuration reads it; "" for ever.
	Lifetime string `json:"lifetime"`
	// Unattended is for questions without a default value; "" means UnattendedCancel.
	Unattended Unattended `json:"unattended"`
}

// Section is the section that holds the settings.
var Section = engine.NewConfigKey(Name, engine.ConfigOptions[Settings]{Check: Settings.Validate})

// Validate returns what is wrong with the settings, or nil.
func (s Settings) Validate() error {
	if s.Unattended != "" && !slices.Contains([]Unattended{UnattendedCancel, UnattendedDecline, UnattendedWait}, s.Unattended) {
		return fmt.Errorf("elicit: unattended is %q; use cancel, decline or wait", s.Unattended)
	}
	if s.Lifetime == "" {
		return nil
	}
	if d, err := time.ParseDuration(s.Lifetime); err != nil || d <= 0 {
		return fmt.Errorf("elicit: lifetime is %q; use a positive duration such as \"10m\"", s.Lifetime)
	}
	return nil
}
