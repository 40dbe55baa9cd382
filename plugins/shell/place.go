package shell

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// enter returns the path of the folder that a line begins in.
func (p plugin) enter(dir string) (string, error) {
	at, err := filepath.EvalSymlinks(filepath.Join(p.root, filepath.FromSlash(dir)))
	if err != nil {
		return "", fmt.Errorf("shell: the working directory %s is gone; change it", dir)
	}
	if _, inside := p.below(at); !inside {
		return "", fmt.Errorf("shell: the working directory %s leads outside of the root; change it", dir)
	}
	return at, nil
}

// below returns the path from the root to a folder, and false if there is none.
func (p plugin) below(at string) (string, bool) {
	rel, err := filepath.Rel(p.root, at)
	if err != nil || !filepath.IsLocal(rel) {
		return "", false
	}
	if info, err := os.Stat(at); err != nil || !info.IsDir() {
		return "", false
	}
	rel = filepath.ToSlash(rel)
	return rel, fs.ValidPath(rel)
}
