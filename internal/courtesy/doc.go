// Package courtesy makes those who are many and quick wait a little for one who is slow,
// and would else never get through between them. It is no lock: whoever has the turn
// may do what others do, and nobody waits for it longer than a while.
//
//	turn.Yield(nil)
//	if tries > 4 {
//		mine := turn.Take() // nil if another has it
//		defer turn.End(mine)
//	}
//
// It imports the standard library only.
package courtesy
