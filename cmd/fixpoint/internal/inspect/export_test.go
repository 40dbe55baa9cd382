package inspect

// Bundle is bundle, for tests.
var Bundle = bundle

// WithCopy is withCopy, for tests.
var WithCopy = withCopy
