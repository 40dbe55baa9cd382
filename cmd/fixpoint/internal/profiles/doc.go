// Package profiles keeps the values of profile keys, such as approvals that hold for
// good, as files of a folder.
package profiles
