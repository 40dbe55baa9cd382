package cli

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	"github.com/ddd26017/fixpoint/phase"
	"github.com/ddd26017/fixpoint/plugins/confirm"
)

// editDiff previews calls of edit_file: what would change in the file as it is now.
type editDiff struct{ files fs.FS }

// longest is the size up to which a file is compared, as confirm.FileDiff does.
const longest = 1 << 20

// Preview returns the diff that the call would make.
func (d editDiff) Preview(_ context.Context, pc *phase.Context) (diff string, err error) {
	var args struct {
		Path string `json:"path"`
		Old  string `json:"old"`
		New  string `json:"new"`
	}
	if err := pc.Call().Args.Decode(&args); err != nil {
		return "", err
	}
	name := path.Clean(args.Path)
	f, err := d.files.Open(name)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }() // it was only read
	raw, err := io.ReadAll(io.LimitReader(f, longest+1))
	switch old := string(raw); {
	case err != nil:
		return "", err
	case len(raw) > longest:
		return "", fmt.Errorf("%s is too long to compare", name)
	case args.Old == "" || strings.Count(old, args.Old) != 1:
		return "", fmt.Errorf("the old text is not in %s exactly once", name)
	default:
		return confirm.Diff("a/"+name, "b/"+name, old, strings.Replace(old, args.Old, args.New, 1)), nil
	}
}
