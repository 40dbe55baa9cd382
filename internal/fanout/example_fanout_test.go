package fanout_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/ddd26017/fixpoint/internal/fanout"
)

func ExampleEach() {
	squares := fanout.Each(context.Background(), fanout.Way{Limit: 2}, 4,
		func(i int) int { return i * i },
		func(error) int { return -1 })
	fmt.Println(squares)
	// Output: [0 1 4 9]
}

func ExampleOne() {
	v, err := fanout.One(context.Background(), nil, errors.New("exited"), func() (string, error) { return "done", nil })
	fmt.Println(v, err)
	// Output: done <nil>
}
