// Package resilient wraps models so that their failures do less harm, and holds the words in which adapters tell of
// failures: [Failure] and its [Class].
package resilient
