package jsonpos_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/internal/jsonpos"
)

type decodesItself struct{ N int }

func (d *decodesItself) UnmarshalJSON([]byte) error { d.N = 1; return nil }

type readsText int

func (r *readsText) UnmarshalText([]byte) error { *r = 1; return nil }

// Only what encoding/json does by itself is not foreign, however deep the rest hides.
func TestForeign(t *testing.T) {
	type ring struct {
		Next *ring
		List []ring
	}
	type deep struct {
		M map[string][]struct{ P *[2]decodesItself }
	}
	for _, v := range []any{0, "", 1.5, []string{}, map[string]any{}, struct{ A any }{}, ring{}, struct{}{}} {
		require.False(t, jsonpos.Foreign(reflect.TypeOf(v)), "%T", v)
	}
	for _, v := range []any{decodesItself{}, &decodesItself{}, deep{}, time.Time{}, readsText(0), map[readsText]int{}, struct{ T *time.Time }{}} {
		require.True(t, jsonpos.Foreign(reflect.TypeOf(v)), "%T", v)
	}
}
