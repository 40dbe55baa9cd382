// Package lineedit reads lines from a terminal in raw mode, with a cursor, history and
// completion, while others write above the line.
//
// golang.org/x/term has an editor, too, which is not used since it takes every character
// for one column, drops what is typed beyond 4096 characters, and cannot begin with a
// text to change. Here a line is made of grapheme clusters with their widths, has no
// limit but that of a paste, and may have line breaks, which are shown as ⏎.
//
// The keys are those of most shells: arrows, Home and End, Ctrl-A, E, B, F, K, U, W, L,
// P, N, Alt-B and F, Tab to complete, and Alt-Enter for a line break. A paste of several
// lines is inserted as it is where the terminal marks pastes, as almost all do.
package lineedit
