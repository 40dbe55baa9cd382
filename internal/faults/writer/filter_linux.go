package writer

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// happen filters the system calls of this process, which any process may do to itself
// where the kernel has filters and no sandbox forbids them.
func (s Strike) happen(path string) error {
	program := s.filter()
	if program == nil {
		return s.instead(path)
	}
	err := install(program)
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) || errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) {
		return s.instead(path)
	}
	return err
}

// filter returns the program of a strike, or nil for one that needs none.
func (s Strike) filter() []unix.SockFilter {
	switch s {
	case SyncFails:
		return answer(failWith(unix.EIO), unix.SYS_FSYNC, unix.SYS_FDATASYNC)
	case DiskFull:
		return answer(failWith(unix.ENOSPC), unix.SYS_PWRITE64)
	case DieAtSync:
		return answer(unix.SECCOMP_RET_KILL_PROCESS, unix.SYS_FSYNC, unix.SYS_FDATASYNC)
	case DieAtResize:
		return answer(unix.SECCOMP_RET_KILL_PROCESS, unix.SYS_FTRUNCATE)
	case DieAtData:
		return dieAtPage(false)
	case DieAtMeta:
		return dieAtPage(true)
	}
	return nil
}

func failWith(errno unix.Errno) uint32 { return unix.SECCOMP_RET_ERRNO | uint32(errno) }

// The instructions of a filter work on what the kernel knows of a call.
const (
	load  = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
	equal = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
	least = unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K
	reply = unix.BPF_RET | unix.BPF_K

	callNumber = 0        // position of the call's number
	fourthArg  = 16 + 3*8 // position of the lower half of the offset of a pwrite, on 64-bit little-endian machines
	metaPages  = 2        // the first pages of the file
)

// answer gives one answer to some calls.
func answer(with uint32, calls ...uint32) []unix.SockFilter {
	program := []unix.SockFilter{{Code: load, K: callNumber}}
	for i, call := range calls {
		program = append(program, unix.SockFilter{Code: equal, K: call, Jt: uint8(len(calls) - i)})
	}
	return append(program, unix.SockFilter{Code: reply, K: unix.SECCOMP_RET_ALLOW}, unix.SockFilter{Code: reply, K: with})
}

// dieAtPage ends the process at a write to a meta page, or to any other page.
func dieAtPage(meta bool) []unix.SockFilter {
	var below, above uint32 = unix.SECCOMP_RET_ALLOW, unix.SECCOMP_RET_KILL_PROCESS
	if meta {
		below, above = above, below
	}
	return []unix.SockFilter{
		{Code: load, K: callNumber},
		{Code: equal, K: unix.SYS_PWRITE64, Jf: 4},
		{Code: load, K: fourthArg},
		{Code: least, K: uint32(metaPages * os.Getpagesize()), Jt: 1},
		{Code: reply, K: below},
		{Code: reply, K: above},
		{Code: reply, K: unix.SECCOMP_RET_ALLOW},
	}
}

// install puts a filter on all threads of the process.
func install(program []unix.SockFilter) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("writer: filter system calls: %w", err)
	}
	f := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	thread, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&f)))
	if errno != 0 {
		return fmt.Errorf("writer: filter system calls: %w", errno)
	}
	if thread != 0 {
		return fmt.Errorf("writer: filter system calls: thread %d has another filter", thread)
	}
	return nil
}
