// Package linear checks with porcupine that a store answers as if it served one call
// at a time. Clients fight over a few threads with appends, repeats of appends, stale
// bases and epochs, loads and leases; what they were told must fit some order of the
// calls in which each call lies between its beginning and its end. Calls of unknown
// outcome have no end.
//
// It proves that nothing was observed that a correct store could not have said, in
// these histories. It says nothing about crashes, and nothing about the outbox.
package linear
