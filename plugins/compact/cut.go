package compact

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ddd26017/fixpoint/inference"
	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/state"
)

var (
	// ErrEmpty is returned for a summary without text.
	ErrEmpty = errors.New("compact: the summary is empty")
	// ErrNoSaving is returned for a summary that is not enough shorter than what it
	// would stand for.
	ErrNoSaving = errors.New("compact: the summary saves too little")
	// ErrNothing is returned for a summary of nothing.
	ErrNothing = errors.New("compact: there is nothing to compact")
	// ErrThread is returned to the gate of a run that delegated: what is compacted is the
	// other thread, which the gate does not see. In a fork it is also returned once about
	// an action that was scheduled before.
	ErrThread = errors.New("compact: the action is about another thread")
)

// Summary stands for the older messages of a thread. The zero Summary stands for none.
type Summary struct {
	Text string `json:"text"`
	// Upto is the index in the transcript of the first message that it does not stand for.
	Upto int `json:"upto"`
	// Kept are the indexes of those before it that are sent nevertheless, in rising order;
	// results stay with their calls and are not listed.
	Kept []int `json:"kept,omitempty"`
	// Print identifies the messages before Upto. If they are others, in a thread that was
	// edited, the summary counts for nothing.
	Print string `json:"print"`
}

func (s Summary) clone() Summary {
	s.Kept = slices.Clone(s.Kept)
	return s
}

// message is how the model gets to see the summary. It has the user's role, since
// vendors want one in front and give system messages more weight than a summary deserves.
func (s Summary) message() inference.Message {
	return inference.User("[Summary of the earlier conversation, made by the program to save room; no new request.]\n" + s.Text)
}

// standing returns the thread's summary, if it fits the transcript.
func standing(snap *state.Snapshot, list []block) (Summary, bool) {
	s := Held.Get(snap)
	return s, s.Text != "" && s.Print == content(before(list, s.Upto))
}

// keeps reports whether a block in front of Upto is sent. Kept is in order and can be long.
func (s Summary) keeps(b block) bool {
	_, found := slices.BinarySearch(s.Kept, b.at)
	return found
}

// shown returns the blocks that are sent besides the summary.
func (s Summary) shown(list []block) []block {
	old := before(list, s.Upto)
	var out []block
	for _, b := range old {
		if s.keeps(b) {
			out = append(out, b)
		}
	}
	return append(out, list[len(old):]...)
}

// Cut is a compaction that has no summary yet; Prepare makes one. It is the caller's own,
// and the zero Cut is about nothing.
type Cut struct {
	// Former is the text of the summary so far, which the new one takes the place of.
	Former string
	// Messages are those that the new summary stands for besides, each result behind
	// its call. They are the caller's. If there are none, there is nothing to compact.
	Messages []inference.Message
	// Notes and Instructions are what plugins and the action want of the summary.
	Notes        []string
	Instructions string
	// Tokens is the size of Former and Messages, and Total that of all that is sent.
	Tokens, Total int

	summary Summary
	need    int
	sets    Settings
	reason  Reason
}

// Prepare returns what an action of these arguments would compact: for gates, which
// bring a summary of their own with Command. The error is ErrThread.
func Prepare(pc *phase.Context, args Args) (Cut, error) {
	if args.Thread != "" && args.Thread != pc.Run().Thread {
		return Cut{}, ErrThread
	}
	return prepare(pc, args), nil
}

func prepare(pc *phase.Context, args Args) Cut {
	snap, sets := pc.Snapshot(), Section.Get(pc)
	list := blocks(pc.Messages())
	c := Cut{Notes: Notes.Get(snap).Slice(), Instructions: args.Instructions, sets: sets, need: 1, reason: args.Reason}
	if c.Instructions == "" {
		c.Instructions = sets.Instructions
	}
	if args.Reason.automatic() {
		c.need = sets.MinSaving
	}
	former, ok := standing(snap, list)
	if !ok {
		former = Summary{}
	}
	shown := former.shown(list)
	c.Total = sets.tokens(joined(shown)...)
	if ok {
		c.Former, c.Tokens = former.Text, sets.tokens(former.message())
		c.Total += c.Tokens
	}
	n, recent := len(shown), args.Keep
	if recent <= 0 {
		recent = sets.KeepRecent
	}
	for n > 0 && recent > 0 {
		n--
		recent -= len(shown[n].messages)
	}
	if n <= len(before(shown, former.Upto)) {
		return c
	}
	stays := staying(snap, sets, shown)
	c.summary = Summary{Upto: shown[n].at, Print: content(before(list, shown[n].at))}
	for i, b := range shown[:n] {
		if stays(i) {
			c.summary.Kept = append(c.summary.Kept, b.at)
			continue
		}
		c.Messages = append(c.Messages, inference.CloneMessages(b.messages)...)
	}
	c.Tokens += sets.tokens(c.Messages...)
	return c
}

// staying returns a function that reports whether block i of those shown stays when it is
// older than the cut: what is pinned, what the user wants now, and instructions but for
// those that are there again later or are of passing interest.
func staying(snap *state.Snapshot, sets Settings, shown []block) func(i int) bool {
	passing := sets.passing()
	latest, again := -1, map[string]int{}
	for i, b := range shown {
		switch b.role() {
		case inference.RoleUser:
			latest = i
		case inference.RoleSystem:
			again[b.messages[0].Text] = i
		}
	}
	pinned := func(index int) bool { return index >= 0 && Pinned.Has(snap, index) }
	return func(i int) bool {
		b := shown[i]
		switch m := b.messages[0]; {
		case slices.ContainsFunc(b.indexes, pinned):
			return true
		case m.Role == inference.RoleSystem:
			return len(m.Parts) > 0 || again[m.Text] == i && !passing(m.Text)
		default:
			return i == latest
		}
	}
}

// worthwhile reports whether the compaction can save enough with a summary that is not
// much longer than the former one.
func (c Cut) worthwhile() bool {
	return len(c.Messages) > 0 && c.Tokens-c.sets.tokens(Summary{Text: c.Former}.message()) >= c.need
}

// Command returns the command that makes text the summary, for the action's handler and
// for gates that replace it. The error is ErrEmpty, ErrNothing or ErrNoSaving.
func (c Cut) Command(text string) (cmd phase.Command, err error) {
	if len(c.Messages) == 0 {
		return cmd, ErrNothing
	}
	s := c.summary.clone()
	if s.Text = strings.TrimSpace(text); s.Text == "" {
		return cmd, ErrEmpty
	}
	size := c.sets.tokens(s.message())
	saved := c.Tokens - size
	if saved < c.need {
		return cmd, fmt.Errorf("%w: %d tokens in place of %d, and %d are to be saved", ErrNoSaving, size, c.Tokens, c.need)
	}
	// A note that came meanwhile is a conflict with the reset, and all is done again with it.
	cmd.Update(Held.With(s), Attempts.Reset(), load.Reset(), Notes.Reset())
	cmd.Schedule(Invalidated.New(InvalidatedArgs{Reason: c.reason, Before: c.Total, After: c.Total - saved}))
	return cmd, nil
}
