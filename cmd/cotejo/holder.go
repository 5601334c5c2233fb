package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"cotejo/admin"
)

// holderPatience bounds how long the other process may take to say who it is.
const holderPatience = 500 * time.Millisecond

// holder names the process that owns the account data of a directory, in Spanish
// and as well as it can be known: a server says so itself, of any other command
// the kernel knows who holds the lock.
func holder(ctx context.Context, d *dataDir) string {
	ctx, cancel := context.WithTimeout(ctx, holderPatience)
	defer cancel()
	var r statusReply
	if err := admin.Call(ctx, d.path, "status", nil, &r, func(string) {}); err == nil {
		return fmt.Sprintf("otro proceso (pid %d, desde %s)", r.PID, r.Since)
	}
	if pid := lockOwner(filepath.Join(d.room(dirAccounts), "LOCK")); pid > 0 {
		return fmt.Sprintf("otro proceso (pid %d)", pid)
	}
	return "otro proceso"
}

// lockOwner reads from /proc/locks who holds a lock on a file; 0 when nobody does
// that this process can see. It never opens the file: closing it would take away
// a lock of this process.
func lockOwner(path string) int {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0
	}
	locks, err := os.Open("/proc/locks")
	if err != nil {
		return 0
	}
	defer locks.Close()
	// 1: POSIX  ADVISORY  WRITE 4030 fe:00:9977934 0 EOF
	file := fmt.Sprintf("%02x:%02x:%d", unix.Major(stat.Dev), unix.Minor(stat.Dev), stat.Ino)
	for lines := bufio.NewScanner(locks); lines.Scan(); {
		f := strings.Fields(lines.Text())
		if len(f) < 8 || f[1] != "POSIX" || f[3] != "WRITE" || f[5] != file {
			continue
		}
		if pid, err := strconv.Atoi(f[4]); err == nil && pid > 0 && pid != os.Getpid() {
			return pid
		}
	}
	return 0
}
