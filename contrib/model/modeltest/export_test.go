package modeltest

import "time"

// Hurry shortens how long the kit waits for what does not happen.
func Hurry(d time.Duration) { patience = d }
