package enginetest_test

import (
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/ddd26017/fixpoint/engine"
	"github.com/ddd26017/fixpoint/enginetest"
	"github.com/stretchr/testify/require"
)

func TestCheckLeaksWaitsForGoroutinesThatEnd(t *testing.T) {
	enginetest.CheckLeaks(t)
	ending := make(chan struct{})
	said := try(t.Context(), func(t enginetest.TB) {
		enginetest.CheckLeaks(t)
		go func() {
			<-ending
			for range 1000 {
				runtime.Gosched()
			}
		}()
		t.Cleanup(func() { close(ending) })
	})
	require.Empty(t, said.faults)
}

func TestCheckLeaksFindsALeak(t *testing.T) {
	old, leak := make(chan struct{}), make(chan struct{})
	go func() { <-old }() // there before, so nobody's leak
	t.Cleanup(func() { close(old); close(leak) })
	said := try(t.Context(), func(t enginetest.TB) {
		enginetest.CheckLeaks(t)
		go func() { <-leak }()
	})
	require.Len(t, said.faults, 1)
	require.Contains(t, said.text(), "1 goroutines are left")
	require.Contains(t, said.text(), "checks_test.go")
}

// Breaking out of the events, or leaving a run early, leaves nothing behind.
func TestEventsLeakNothing(t *testing.T) {
	enginetest.CheckLeaks(t)
	config, _ := enginetest.Config(t)
	config.Model = enginetest.NewScript(enginetest.Call("c1", "look", nil), enginetest.Say("done"))
	eng := enginetest.Engine(t, config)
	for stop := range 30 {
		n := 0
		for _, err := range eng.Events(t.Context(), engine.AgentSpec{ID: "a"}, engine.Prompt("go")) {
			require.NoError(t, err)
			if n++; n > stop {
				break
			}
		}
	}
}

func TestCheckDeterminismPasses(t *testing.T) {
	procs := runtime.GOMAXPROCS(0)
	seen := map[int]int{}
	enginetest.CheckDeterminism(t, 7, func(shuffle enginetest.Shuffle) []string {
		seen[runtime.GOMAXPROCS(0)]++
		var wg sync.WaitGroup
		lines := make([]string, 20)
		for i := range lines {
			wg.Go(func() { shuffle(); lines[i] = fmt.Sprint(i) })
		}
		wg.Wait()
		return lines
	})
	require.Equal(t, map[int]int{1: 3, 2: 2, 8: 2}, seen)
	require.Equal(t, procs, runtime.GOMAXPROCS(0), "it is set back")
}

func TestCheckDeterminismFindsAnOrderByTiming(t *testing.T) {
	said := try(t.Context(), func(t enginetest.TB) {
		enginetest.CheckDeterminism(t, 200, func(shuffle enginetest.Shuffle) []string {
			var wg sync.WaitGroup
			var mu sync.Mutex
			var lines []string
			for i := range 20 {
				wg.Go(func() {
					shuffle()
					mu.Lock()
					defer mu.Unlock()
					lines = append(lines, fmt.Sprint("by ", i))
				})
			}
			wg.Wait()
			return lines
		})
	})
	require.Len(t, said.faults, 1)
	require.Contains(t, said.text(), "was not like the first: line")

	said = try(t.Context(), func(t enginetest.TB) {
		enginetest.CheckDeterminism(t, 3, func(enginetest.Shuffle) []string { return nil })
	})
	require.Contains(t, said.text(), "no lines")
}

// A shuffle takes no time worth mentioning.
func TestShuffleIsShort(t *testing.T) {
	start := time.Now()
	enginetest.CheckDeterminism(t, 2, func(shuffle enginetest.Shuffle) []string {
		for range 200 {
			shuffle()
		}
		return []string{"x"}
	})
	require.Less(t, time.Since(start), 5*time.Second)
}
