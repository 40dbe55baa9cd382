package store_test

import (
	"errors"
	"fmt"

	"github.com/ddd26017/fixpoint/store"
)

func ExampleParseEffectRef() {
	ref, err := store.ParseEffectRef("shop/7/12/0")
	fmt.Println(ref.Thread, ref.Revision, ref.Index, err)
	_, err = store.ParseEffectRef("shop/07/0")
	fmt.Println(err)
	// Output:
	// shop/7 12 0 <nil>
	// store: "shop/07/0" is no effect reference; want thread/revision/index
}

func ExampleConflict() {
	err := fmt.Errorf("append: %w", &store.Conflict{Thread: "t1", Base: 3, Have: 4})
	if conflict := (*store.Conflict)(nil); errors.As(err, &conflict) {
		fmt.Println("at", conflict.Have, errors.Is(err, store.ErrConflict))
	}
	fmt.Println(err)
	// Output:
	// at 4 true
	// append: store: thread t1 is at revision 4, not at 3; load it again
}
