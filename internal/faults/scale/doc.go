// Package scale measures what workers and stores do in a second and what that costs, and
// computes from it what many of them would do, in a model. Unlike the other checks it has
// no bounds to meet, except those that follow from the code: how many commits a run takes
// does not depend on the machine. docs/scale.md has the figures and what they mean.
package scale
