package ledger_test

import (
	"fmt"
	"sync"

	"github.com/ddd26017/fixpoint/internal/ledger"
)

func Example() {
	var all sync.Map
	l := ledger.New[string, int](&all)
	l.Add("parcel", 7)
	l.Add("letter", 8)
	l.Done("parcel", true)
	done := l.Take()
	l.Settled(done...)
	fmt.Println(done)
	// Output: [7]
}
