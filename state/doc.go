// Package state holds typed state that changes by atomic commits.
//
// A key is a package-level value. A store is built with the keys it serves,
// and hands out immutable snapshots. What is to change is said in updates,
// which are gathered in batches and committed together:
//
//	var turns = state.NewCounter("turns", state.Options[int64]{})
//
//	store, err := state.NewStore(state.Config{Keys: []state.AnyKey{turns}})
//	...
//	_, err = store.Commit(state.Batch{Owner: "loop", Updates: []state.Update{turns.With(1)}})
//	n := turns.Get(store.Snapshot()) // 1
//
// # Keys
//
// [Key] is the general form: values of one type, updates of another, and a
// reducer. [Cell], [Counter], [Log], [Set] and [Table] are ready-made. A key is
// Exclusive, so that one batch of a commit may write it, or Commutative, so
// that any number may. The unit of conflict of a Table is the entry. Reading a
// key that nobody wrote gives its initial value and changes nothing.
//
// # Snapshots and commits
//
// Taking a snapshot is one atomic load. A commit copies what it touches and
// shares the rest, so its cost depends on the number of touched keys and not
// on the size of the state, and old snapshots stay as they were. See
// [Store.Commit] for the rule that decides between batches.
//
// # Frozen means frozen
//
// A snapshot must not change through a value that someone got from it. Keys of
// types that share memory when copied (maps, slices, pointers and so on) are
// refused unless they say how to deal with it: Clone makes a copy wherever a
// value goes in or out; Shared is a promise never to change one in place, and
// [SealSnapshot] finds code that breaks it. [List] and [Map] are persistent
// containers that need neither.
//
// # Ownership and concurrency
//
// Keys, stores, snapshots, updates, lists and maps are safe for concurrent
// use. No lock is held while functions of a key, subscribers or codecs run;
// any of them may panic, which is an error and not the end of the process.
package state
