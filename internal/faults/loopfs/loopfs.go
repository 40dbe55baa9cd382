// Package loopfs makes small file systems in files, so that a check can fill one up or
// keep what had reached its device at one moment. It needs Linux, root and loop devices.
package loopfs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// Usable says why this machine cannot mount files, or nil.
func Usable() error {
	var missing []error
	if os.Geteuid() != 0 {
		missing = append(missing, errors.New("loopfs: mounting needs root"))
	}
	if _, err := os.Stat("/dev/loop-control"); err != nil {
		missing = append(missing, fmt.Errorf("loopfs: no loop devices: %w", err))
	}
	for _, tool := range []string{"mkfs.ext4", "mount", "umount"} {
		if _, err := exec.LookPath(tool); err != nil {
			missing = append(missing, fmt.Errorf("loopfs: %w", err))
		}
	}
	return errors.Join(missing...)
}

// Make makes an empty ext4 file system of that many bytes in a file.
func Make(ctx context.Context, image string, size int64) error {
	f, err := os.Create(image)
	if err != nil {
		return err
	}
	if err := errors.Join(f.Truncate(size), f.Close()); err != nil {
		return err
	}
	// Without the lazy parts nothing but the check itself writes to the device.
	return command(ctx, "mkfs.ext4", "-q", "-F", "-m", "0", "-E", "lazy_itable_init=0,lazy_journal_init=0", image)
}

// FS is a file system that is mounted.
type FS struct {
	Dir    string
	device string // such as "loop0"
}

// Mount mounts the file system in a file, which replays its journal, at a folder that
// it makes. It writes back by itself only after ten minutes.
func Mount(ctx context.Context, image, dir string) (*FS, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if err := command(ctx, "mount", "-o", "loop,noatime,commit=600", image, dir); err != nil {
		return nil, err
	}
	fs := &FS{Dir: dir}
	mounts, err := os.ReadFile("/proc/mounts")
	if err != nil {
		return nil, errors.Join(err, fs.Unmount())
	}
	for line := range strings.Lines(string(mounts)) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[1] == dir {
			fs.device = filepath.Base(fields[0])
		}
	}
	if fs.device == "" {
		return nil, errors.Join(fmt.Errorf("loopfs: %s is not in /proc/mounts", dir), fs.Unmount())
	}
	return fs, nil
}

// Unmount ends it; the loop device goes with it. It works also when the context of the
// check has ended.
func (fs *FS) Unmount() error {
	return command(context.Background(), "umount", fs.Dir)
}

// Written returns how many sectors were written to the device, and how many requests
// are under way.
func (fs *FS) Written() (sectors, underWay int, err error) {
	text, err := os.ReadFile("/sys/block/" + fs.device + "/stat")
	if err != nil {
		return 0, 0, err
	}
	fields := strings.Fields(string(text))
	if len(fields) < 9 {
		return 0, 0, fmt.Errorf("loopfs: %q is no statistic of a device", text)
	}
	sectors, err1 := strconv.Atoi(fields[6])
	underWay, err2 := strconv.Atoi(fields[8])
	return sectors, underWay, errors.Join(err1, err2)
}

// Copy copies a file, holes as holes.
func Copy(ctx context.Context, from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	block := make([]byte, 64<<10)
	empty := string(make([]byte, len(block)))
	var size int64
	for ctx.Err() == nil {
		n, err := io.ReadFull(in, block)
		if n > 0 && string(block[:n]) != empty[:n] {
			if _, err := out.WriteAt(block[:n], size); err != nil {
				return errors.Join(err, out.Close())
			}
		}
		size += int64(n)
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return errors.Join(out.Truncate(size), out.Close())
		}
		if err != nil {
			return errors.Join(err, out.Close())
		}
	}
	return errors.Join(ctx.Err(), out.Close())
}

// CopyQuiet copies the image of a mounted file system whose writers are stopped, as it
// was at one moment: it tries again when anything reached the device meanwhile.
func (fs *FS) CopyQuiet(ctx context.Context, image, to string) error {
	for range 100 {
		before, busy, err := fs.Written()
		if err != nil {
			return err
		}
		if err := Copy(ctx, image, to); err != nil {
			return err
		}
		after, still, err := fs.Written()
		if err != nil {
			return err
		}
		if before == after && busy == 0 && still == 0 {
			return nil
		}
	}
	return fmt.Errorf("loopfs: %s is written to all the time", fs.device)
}

func command(ctx context.Context, name string, args ...string) error {
	if out, err := exec.CommandContext(ctx, name, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("loopfs: %s %s: %w: %s", name, strings.Join(args, " "), err, out)
	}
	return nil
}
