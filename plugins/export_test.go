package plugins

// ModuleIn is Module for a build that a test makes up.
var ModuleIn = moduleIn
