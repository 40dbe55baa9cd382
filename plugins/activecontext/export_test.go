package activecontext

// Paths is what finds the files that arguments name.
var Paths = paths
