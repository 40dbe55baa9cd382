// Package serve serves runs of an engine over HTTP.
package serve
