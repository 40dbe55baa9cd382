package pairing

import "slices"

// Rules tell Order what the items are. Q is one question; an item may ask several.
type Rules[T, Q any] struct {
	// Asks returns the questions of an item, and whether it is of the kind that asks
	// at all. Such an item ends the wait for answers, also when it asks none.
	Asks func(item T) (questions []Q, asks bool)
	// ID returns what names a question. It is unique among those of one item.
	ID func(question Q) string
	// Answers returns which question an item answers, and whether it is an answer.
	Answers func(item T) (id string, answers bool)
	// Missing makes up the answer to a question that has none.
	Missing func(question Q) T
}

// Order returns the items with the answers of each item's questions directly
// behind it, in the order of the questions, one for each. Answers count when they
// come before the next item that asks; others, and repeated ones, are dropped.
// Everything else keeps its order.
func Order[T, Q any](items []T, r Rules[T, Q]) []T {
	out := make([]T, 0, len(items))
	var open []Q
	var between []T
	answers := map[string]T{}
	flush := func() {
		for _, q := range open {
			answer, ok := answers[r.ID(q)]
			if !ok {
				answer = r.Missing(q)
			}
			out = append(out, answer)
		}
		out = append(out, between...)
		open, between = nil, nil
		clear(answers)
	}
	for _, item := range items {
		id, answer := r.Answers(item)
		questions, asks := r.Asks(item)
		switch {
		case answer:
			_, again := answers[id]
			if !again && slices.ContainsFunc(open, func(q Q) bool { return r.ID(q) == id }) {
				answers[id] = item
			}
		case asks:
			flush()
			out = append(out, item)
			open = questions
		case len(open) > 0:
			between = append(between, item)
		default:
			out = append(out, item)
		}
	}
	flush()
	return out
}
