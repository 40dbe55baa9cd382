package fanout_test

import (
	"context"
	"fmt"

	"github.com/ddd26017/fixpoint/internal/fanout"
)

func ExampleEach() {
	squares := fanout.Each(context.Background(), 4, 2,
		func(i int) int { return i * i },
		func(error) int { return -1 })
	fmt.Println(squares)
	// Output: [0 1 4 9]
}
