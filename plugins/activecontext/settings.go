package activecontext

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/ddd26017/fixpoint/engine"
)

// Unchanged says what is shown of a touched file whose content the history has already.
type Unchanged string

// The ways; the zero one repeats.
const (
	UnchangedRepeat Unchanged = "repeat"
	UnchangedNote   Unchanged = "note"
)

// Settings is the content of the section.
type Settings struct {
	// Texts are shown as they are.
	Texts []string `json:"texts"`
	// Files are always shown: paths with slashes in the file system given to New.
	Files []string `json:"files"`
	// Recent is how many touched files are shown. The default is 5; 0 means none.
	Recent int `json:"recent"`
	// Args are the names of the arguments that hold paths. The default is "path".
	Args []string `json:"args"`
	// MaxBytes bounds the whole message, and MaxFileBytes what is shown of one file. The
	// defaults are 32 KiB and 8 KiB.
	MaxBytes     int `json:"max_bytes"`
	MaxFileBytes int `json:"max_file_bytes"`
	// Unchanged is about files that the history shows.
	Unchanged Unchanged `json:"unchanged"`
}

// MinBytes is the least that Settings.MaxBytes can be.
const MinBytes = 1024

// Section is the section that holds the settings.
var Section = engine.NewConfigKey(Name, engine.ConfigOptions[Settings]{
	Default: func() Settings {
		return Settings{Recent: 5, Args: []string{"path"}, MaxBytes: 32 << 10, MaxFileBytes: 8 << 10}
	},
	Check: Settings.Validate,
})

// Validate returns what is wrong with the settings, or nil.
func (s Settings) Validate() error {
	for i, text := range s.Texts {
		if strings.TrimSpace(text) == "" {
			return fmt.Errorf("activecontext: texts[%d] is empty; say something or leave it out", i)
		}
	}
	for i, name := range s.Files {
		if !fs.ValidPath(name) || name == "." {
			return fmt.Errorf("activecontext: files[%d] is %q; use the path of a file, with slashes, relative to the directory and inside it", i, name)
		}
	}
	if s.Recent < 0 || s.Recent > MaxTouched {
		return fmt.Errorf("activecontext: recent is %d; want 0 to %d", s.Recent, MaxTouched)
	}
	if slices.Contains(s.Args, "") {
		return fmt.Errorf("activecontext: args has an empty name; use the names of arguments that hold paths")
	}
	if s.MaxBytes < MinBytes {
		return fmt.Errorf("activecontext: max_bytes is %d; want %d or more", s.MaxBytes, MinBytes)
	}
	if s.MaxFileBytes < 1 {
		return fmt.Errorf("activecontext: max_file_bytes is %d; want 1 or more", s.MaxFileBytes)
	}
	switch s.Unchanged {
	case "", UnchangedRepeat, UnchangedNote:
		return nil
	}
	return fmt.Errorf("activecontext: unchanged is %q; use %s or %s", s.Unchanged, UnchangedRepeat, UnchangedNote)
}
