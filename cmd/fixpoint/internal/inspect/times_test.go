package inspect

import (
	"context"
	"net/http"
	"time"
)

// HandlerAt is Handler with other times.
func HandlerAt(source *Source, every, beat, patience time.Duration) http.Handler {
	return newHandler(&handler{source: source, every: every, beat: beat, patience: patience})
}

// FollowAt is Follow that looks at the file more often.
func FollowAt(ctx context.Context, path string, source *Source, caught func(), every time.Duration) error {
	return follow(ctx, path, source, caught, every)
}

// FollowStoreAt is FollowStore that looks at the store more often.
func FollowStoreAt(ctx context.Context, folder string, source *Source, caught func(), every time.Duration) error {
	return followStore(ctx, folder, source, caught, every)
}
