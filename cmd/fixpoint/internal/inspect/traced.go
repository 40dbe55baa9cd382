package inspect

import (
	"bytes"
	"io"
	"os"
	"reflect"
	"time"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/plugins/trace"
	"github.com/ddd26017/fixpoint/plugins/trace/recording"
)

// lag is how long a trace may be behind the store of its run.
const lag = 5 * time.Second

// traced is a trace beside a store.
type traced struct {
	path  string
	in    intake
	read  int64
	begun bool // it is being told
	runs  map[place]*reach
	told  map[commitOf]bool
}

// commitOf names a commit.
type commitOf struct {
	thread   string
	revision uint64
}

// place is a run of a thread.
type place struct{ thread, run string }

// reach is how far a trace tells of a run.
type reach struct {
	seq, revision uint64
	over          bool // it told the run's end, or that it waits
}

func newTraced(path string, rec *recording.Recording) *traced {
	t := &traced{path: path, runs: map[place]*reach{}, told: map[commitOf]bool{}}
	t.in = intake{rec: rec, seen: t.note}
	return t
}

// begin tells the trace from now on. It is not before what happened before its run was
// told.
func (t *traced) begin() error {
	t.begun = true
	return t.more()
}

// news is more once the trace is told.
func (t *traced) news() error {
	if !t.begun {
		return nil
	}
	return t.more()
}

// more reads the lines that were added to the trace. One that is not there tells
// nothing. The error is errPruned when what was read is not in it any more.
func (t *traced) more() error {
	info, err := os.Stat(t.path)
	switch {
	case t.read == 0 && (err != nil || !info.Mode().IsRegular()):
		return nil // not there any more, or somebody else's
	case err != nil || info.Size() < t.read:
		return errPruned
	case info.Size() == t.read:
		return nil
	}
	file, err := os.Open(t.path)
	if err != nil {
		return err
	}
	defer file.Close()
	news, err := io.ReadAll(io.NewSectionReader(file, t.read, info.Size()-t.read))
	if err != nil {
		return err
	}
	news = news[:bytes.LastIndexByte(news, '\n')+1] // the rest is still being written
	t.read += int64(len(news))
	return t.in.all(bytes.NewReader(news))
}

// note keeps how far the trace tells.
func (t *traced) note(line trace.Line) {
	if line.Event == nil {
		return
	}
	h := line.Event.Head()
	at := place{h.Thread, h.Run}
	r := t.runs[at]
	if r == nil {
		r = &reach{}
		t.runs[at] = r
	}
	r.seq, r.revision, r.over = h.Seq, max(r.revision, h.Revision), false
	switch line.Event.(type) {
	case engine.RunFinished, engine.RunSuspended:
		r.over = true
	case engine.Committed:
		t.told[commitOf{h.Thread, h.Revision}] = true
	}
}

// numbered returns the event with another number.
func numbered(e engine.Event, seq uint64) engine.Event {
	v := reflect.New(reflect.TypeOf(e)).Elem()
	v.Set(reflect.ValueOf(e))
	v.FieldByName("Seq").SetUint(seq)
	return v.Interface().(engine.Event)
}
