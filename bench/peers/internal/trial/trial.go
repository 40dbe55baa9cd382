// Package trial makes works of what can be done again and again and checked at the end.
package trial

import (
	"fmt"

	"github.com/ddd26017/fixpoint/bench"
)

// Trial is a piece of work that is ready to be done, any number of times.
type Trial struct {
	Run    func(n int) error    // does it n times
	Verify func(done int) error // fails unless the state is what so many times must leave
}

// Work makes a Work of a trial. What was left behind is checked after each
// measurement, so that a peer that does something else gives an error and no number.
func Work(prepare func() (Trial, error)) bench.Work {
	return func(measure func(step func(n int) error) error) error {
		t, err := prepare()
		if err != nil {
			return err
		}
		done := 0
		err = measure(func(n int) error {
			done += n
			return t.Run(n)
		})
		if err != nil {
			return err
		}
		return t.Verify(done)
	}
}

// Each is a run that calls step n times.
func Each(step func() error) func(n int) error {
	return func(n int) error {
		for range n {
			if err := step(); err != nil {
				return err
			}
		}
		return nil
	}
}

// Equal fails unless a number is what it should be.
func Equal(what string, got, want int) error {
	if got != want {
		return fmt.Errorf("trial: %s is %d and should be %d", what, got, want)
	}
	return nil
}
