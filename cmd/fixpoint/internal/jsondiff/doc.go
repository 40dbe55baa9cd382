// Package jsondiff tells where two JSON values differ.
package jsondiff
