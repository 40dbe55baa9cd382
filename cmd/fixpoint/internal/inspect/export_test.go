package inspect

// Bundle is bundle, for tests.
var Bundle = bundle
