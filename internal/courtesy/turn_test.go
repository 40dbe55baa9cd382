package courtesy_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/internal/courtesy"
)

func Example() {
	var turn courtesy.Turn
	turn.Yield(nil) // nobody has it
	mine := turn.Take()
	turn.Yield(mine) // nor does another
	fmt.Println(mine != nil, turn.Take() != nil)
	turn.End(mine)
	fmt.Println(turn.Take() != nil)
	// Output:
	// true false
	// true
}

func TestOthersWaitForTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var turn courtesy.Turn
		mine := turn.Take()
		var through atomic.Int64
		for range 3 {
			go func() {
				turn.Yield(nil)
				through.Add(1)
			}()
			synctest.Wait()
		}
		require.Zero(t, through.Load())
		turn.End(mine)
		synctest.Wait()
		require.EqualValues(t, 3, through.Load())
		turn.End(nil)
	})
}

// It is no lock: a turn that does not end is over after a while, and its late end takes
// nothing from who has the next one.
func TestATurnThatDoesNotEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var turn courtesy.Turn
		stuck, start := turn.Take(), time.Now()
		turn.Yield(nil)
		require.Positive(t, time.Since(start))
		next := turn.Take()
		require.NotNil(t, next)
		turn.End(stuck)
		require.Nil(t, turn.Take())
		turn.End(next)
		require.NotNil(t, turn.Take())
	})
}
