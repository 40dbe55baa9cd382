package terminal

import (
	"io"

	"github.com/charmbracelet/lipgloss"
	"github.com/muesli/termenv"
)

// styles are the looks of the parts of a line.
type styles struct {
	plain, bold, dim lipgloss.Style
	good, bad, note  lipgloss.Style // what went well, what did not, what needs a look
	phase, step      lipgloss.Style
	tool, model      lipgloss.Style
	flow             lipgloss.Style // rounds and effects
}

// newStyles returns the styles for a screen, all of them plain without color.
func newStyles(w io.Writer, color bool) styles {
	profile := termenv.Ascii
	if color {
		profile = termenv.ANSI
	}
	r := lipgloss.NewRenderer(w)
	r.SetColorProfile(profile)
	// The terminal's own sixteen colours, so that they fit any background.
	fg := func(color string) lipgloss.Style { return r.NewStyle().Foreground(lipgloss.Color(color)) }
	return styles{
		plain: r.NewStyle(),
		bold:  r.NewStyle().Bold(true),
		dim:   r.NewStyle().Faint(true),
		good:  fg("2"),
		bad:   fg("1").Bold(true),
		note:  fg("3").Bold(true),
		phase: fg("4"),
		step:  r.NewStyle().Bold(true).Underline(true),
		tool:  fg("6").Bold(true),
		model: fg("5"),
		flow:  fg("6"),
	}
}
