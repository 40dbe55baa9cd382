// Package enum writes and reads the texts of an enumeration, whose values are the
// numbers from 0 on.
//
//	sizes := enum.Names{Package: "shop", Texts: []string{"small", "large"}}
//	sizes.Text("Size", 1) // large
//	sizes.Parse("size", []byte("huge"), &v) // shop: unknown size "huge", want small or large
//
// It imports the standard library only.
package enum
