// Package ledger knows what is under way, until somebody has written down that it is
// over.
//
//	var all sync.Map
//	l := ledger.New[string, int](&all)
//	l.Add("parcel", 7)
//	l.Done("parcel", true)
//	write(l.Take()) // [7]
//	l.Settled(7)
//
// It imports the standard library only.
package ledger
