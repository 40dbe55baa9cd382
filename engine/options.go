package engine

import (
	"time"

	"github.com/ddd26017/fixpoint/internal/enum"
	"github.com/ddd26017/fixpoint/state"
)

// ErrorRule says what a hook's failure does to its phase.
type ErrorRule uint8

// The rules.
const (
	// Fail is the zero rule: the phase fails, nothing of the hook's tier commits.
	Fail ErrorRule = iota
	// Skip drops only the failing hook's command and emits a warning.
	Skip
)

var errorRules = enum.Names{Package: "engine", Texts: []string{"fail", "skip"}}

// String returns "fail" or "skip".
func (r ErrorRule) String() string { return errorRules.Text("ErrorRule", uint8(r)) }

// MarshalText writes the rule's name.
func (r ErrorRule) MarshalText() ([]byte, error) { return errorRules.Marshal("error rule", uint8(r)) }

// UnmarshalText reads what MarshalText wrote.
func (r *ErrorRule) UnmarshalText(text []byte) error {
	return errorRules.Parse("error rule", text, (*uint8)(r))
}

// HookOption adjusts a hook at registration.
type HookOption interface{ hook(*hookOptions) }

// GateOption adjusts a gate at registration.
type GateOption interface{ gate(*gateOptions) }

// TransformOption adjusts a transform at registration.
type TransformOption interface{ transform(*transformOptions) }

type hookOptions struct {
	tier    int
	timeout time.Duration
	onError ErrorRule
	reads   []state.AnyKey
	writes  []state.AnyKey
}

type gateOptions struct {
	timeout  time.Duration
	failOpen bool
}

type transformOptions struct {
	timeout time.Duration
	onError ErrorRule
}

type tierOption int

func (t tierOption) hook(o *hookOptions) { o.tier = int(t) }

// Tier orders hooks of one phase: lower tiers run first, with a commit between
// tiers. Hooks of one tier run in parallel. The default is 0.
func Tier(n int) HookOption { return tierOption(n) }

// TimeoutOption is the option that Timeout returns.
type TimeoutOption time.Duration

func (t TimeoutOption) hook(o *hookOptions)           { o.timeout = time.Duration(t) }
func (t TimeoutOption) gate(o *gateOptions)           { o.timeout = time.Duration(t) }
func (t TimeoutOption) transform(o *transformOptions) { o.timeout = time.Duration(t) }

// Timeout bounds one call of a hook, gate or transform. At the deadline the
// phase goes on without it and a late result is thrown away; the next call
// counts again. Time spent waiting for a person does not count.
func Timeout(d time.Duration) TimeoutOption { return TimeoutOption(d) }

// OnErrorOption is the option that OnError returns.
type OnErrorOption ErrorRule

func (r OnErrorOption) hook(o *hookOptions)           { o.onError = ErrorRule(r) }
func (r OnErrorOption) transform(o *transformOptions) { o.onError = ErrorRule(r) }

// OnError sets what a failure of a hook or transform does.
func OnError(r ErrorRule) OnErrorOption { return OnErrorOption(r) }

type failOpenOption struct{}

func (failOpenOption) gate(o *gateOptions) { o.failOpen = true }

// FailOpen makes a failing gate count as having no opinion instead of blocking
// the call. It is the only way out of failing closed.
func FailOpen() GateOption { return failOpenOption{} }

type readsOption []state.AnyKey

func (k readsOption) hook(o *hookOptions) { o.reads = append(o.reads, k...) }

// Reads declares keys whose values the hook depends on: if one changes while the
// hook runs, the hook runs again. This excludes write skew.
func Reads(keys ...state.AnyKey) HookOption { return readsOption(keys) }

type writesOption []state.AnyKey

// hook leaves a list that is not nil, also without any key: something was declared.
func (k writesOption) hook(o *hookOptions) { o.writes = append(k[:0:0], append(o.writes, k...)...) }

// Writes declares keys that the hook may write, or without any that it writes none. It
// changes nothing at run time; Describe uses it to tell which hooks could conflict.
func Writes(keys ...state.AnyKey) HookOption { return append(writesOption{}, keys...) }
