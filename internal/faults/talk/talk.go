// Package talk is what a check and its child processes say to each other: values as
// JSON, one line each.
//
// A child's line is in the pipe when Say returned. What the parent reads is therefore
// a lower bound of what the child did, also of one that was killed, and lines come in
// the order in which they were said.
package talk

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"sync"
)

// Voice writes lines. It is safe for concurrent use.
type Voice struct {
	mu sync.Mutex
	to io.Writer
}

// NewVoice returns a Voice that writes to a pipe, each line with one write.
func NewVoice(to io.Writer) *Voice { return &Voice{to: to} }

// Say writes one line. A child cannot go on when it fails, since its parent would not
// know what it did, so it panics.
func (v *Voice) Say(line any) {
	text, err := json.Marshal(line)
	if err != nil {
		panic(fmt.Sprintf("talk: %v", err))
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if _, err := v.to.Write(append(text, '\n')); err != nil {
		panic(fmt.Sprintf("talk: the parent is gone: %v", err))
	}
}

// Peer is a child process as its parent sees it. Its methods are for one goroutine at
// a time, except Tell.
type Peer struct {
	cmd  *exec.Cmd
	tell *Voice
	in   io.Closer
	out  *json.Decoder
	errs bytes.Buffer
}

// Start starts cmd with pipes to it.
func Start(cmd *exec.Cmd) (*Peer, error) {
	p := &Peer{cmd: cmd}
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("talk: %w", err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("talk: %w", err)
	}
	cmd.Stderr = &p.errs
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("talk: start a child: %w", err)
	}
	p.tell, p.in, p.out = NewVoice(in), in, json.NewDecoder(out)
	return p, nil
}

// Pid returns the process's id.
func (p *Peer) Pid() int { return p.cmd.Process.Pid }

// Tell sends a line to the child.
func (p *Peer) Tell(line any) error {
	text, err := json.Marshal(line)
	if err != nil {
		return fmt.Errorf("talk: %w", err)
	}
	p.tell.mu.Lock()
	defer p.tell.mu.Unlock()
	if _, err := p.tell.to.Write(append(text, '\n')); err != nil {
		return fmt.Errorf("talk: tell child %d: %w", p.Pid(), err)
	}
	return nil
}

// Hear reads the child's next line. It returns io.EOF when the child has ended, killed
// in the middle of a line or not.
func (p *Peer) Hear(line any) error {
	err := p.out.Decode(line)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return io.EOF
	}
	return err
}

// Kill ends the process with SIGKILL. What it had said can still be heard; call Gone
// behind that.
func (p *Peer) Kill() error { return p.cmd.Process.Kill() }

// Hush tells the child that nothing more will be told.
func (p *Peer) Hush() error { return p.in.Close() }

// Gone waits for the end of the process, after all was heard. killed says whether a
// signal ended it; err is not nil when it ended by itself and failed.
func (p *Peer) Gone() (killed bool, err error) {
	err = p.cmd.Wait()
	if p.cmd.ProcessState == nil {
		return false, fmt.Errorf("talk: wait for child %d: %w", p.Pid(), err)
	}
	if p.cmd.ProcessState.ExitCode() < 0 {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("talk: child %d failed: %w: %s", p.Pid(), err, bytes.TrimSpace(p.errs.Bytes()))
	}
	return false, nil
}
