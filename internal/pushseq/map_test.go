package pushseq_test

import (
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ddd26017/fixpoint/internal/pushseq"
)

func TestMapAndKeys(t *testing.T) {
	texts := pushseq.Map(pushseq.Keys(slices.All([]string{"a", "b", "c"})), strconv.Itoa)
	require.Equal(t, []string{"0", "1", "2"}, slices.Collect(texts))
	for text := range texts {
		require.Equal(t, "0", text)
		break
	}
}
