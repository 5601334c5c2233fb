package main

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	"cotejo/accounts"
	"cotejo/admin"
	"cotejo/backup"
	"cotejo/export"
	"cotejo/ingest"
	"cotejo/jobs"
	"cotejo/ledger"
	"cotejo/snapshots"
	"cotejo/store"
)

// Exit codes, documented in docs/operations.md. 2 is left to the Go runtime: a
// crash exits with it.
const (
	exitFailed      = 1
	exitVerifyNo    = 3
	exitPartial     = 4
	exitNotFound    = 5
	exitUsage       = 64
	exitUnavailable = 69
	exitInUse       = 73
	exitIO          = 74
	exitTryAgain    = 75
	exitConfig      = 78
	exitInterrupted = 130
)

// exitError ends the process with a code of its own.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

func exitWith(code int, format string, args ...any) error {
	return &exitError{code, fmt.Errorf(format, args...)}
}

// exitCode is the one table from error to exit code.
func exitCode(err error) int {
	var exit *exitError
	var corrupt *snapshots.CorruptError
	var remote *admin.Error
	var anchor *ledger.AnchorError
	var tampered *backup.TamperedError
	var errno syscall.Errno
	var confirmed *accounts.ConfirmedError
	switch {
	case errors.As(err, &exit):
		return exit.code
	case errors.As(err, &remote):
		return remote.Code
	case errors.Is(err, context.Canceled):
		return exitInterrupted
	case errors.Is(err, store.ErrInUse):
		return exitInUse
	case errors.Is(err, accounts.ErrPepper), errors.As(err, &anchor), errors.Is(err, ledger.ErrAnchor), errors.Is(err, store.ErrFormat), errors.Is(err, backup.ErrNewer),
		errors.Is(err, ingest.ErrAccess), errors.Is(err, ingest.ErrUnconfigured):
		return exitConfig
	case errors.Is(err, accounts.ErrInvalid), errors.Is(err, accounts.ErrTooManyKeys), errors.Is(err, accounts.ErrTooManyOrganizations),
		errors.Is(err, accounts.ErrEmailTaken), errors.As(err, &confirmed), errors.Is(err, ingest.ErrUndated),
		errors.Is(err, snapshots.ErrNewer), errors.Is(err, snapshots.ErrDecision), errors.Is(err, ingest.ErrUndecidable), errors.Is(err, backup.ErrTarget),
		errors.Is(err, export.ErrTarget):
		return exitUsage
	case errors.Is(err, ingest.ErrUnavailable), errors.Is(err, store.ErrUnavailable):
		return exitUnavailable
	case errors.Is(err, snapshots.ErrBusy), errors.Is(err, jobs.ErrRunning), errors.Is(err, ledger.ErrBusy), errors.Is(err, ledger.ErrClosed),
		errors.Is(err, ledger.ErrStandby), errors.Is(err, store.ErrFenced), errors.Is(err, ledger.ErrUnknown):
		return exitTryAgain
	case errors.As(err, &corrupt), errors.As(err, &tampered), errors.Is(err, ledger.ErrIntegrity):
		return exitVerifyNo
	case errors.Is(err, accounts.ErrNotFound), errors.Is(err, accounts.ErrNoRegistration), errors.Is(err, accounts.ErrNoRegistrationKey), errors.Is(err, jobs.ErrUnknown), errors.Is(err, snapshots.ErrNotFound), errors.Is(err, snapshots.ErrNoEdition),
		errors.Is(err, backup.ErrNoBackup):
		return exitNotFound
	case errors.Is(err, ledger.ErrFailed), errors.Is(err, ingest.ErrNoSpace):
		return exitIO
	case errors.As(err, &errno):
		return errnoExit(errno)
	}
	return exitFailed
}

// nextStep says in Spanish what to do about a machine that refused; "" when the
// error is another one.
func nextStep(err error) string {
	var errno syscall.Errno
	if !errors.As(err, &errno) {
		return ""
	}
	switch errno {
	case syscall.EACCES, syscall.EPERM:
		return "revise los permisos y con qué usuario corre el programa"
	case syscall.EROFS:
		return "el disco está montado de solo lectura: revise por qué (dmesg) y móntelo para escribir"
	case syscall.ENOSPC, syscall.EDQUOT:
		return "libere espacio en el disco y repita"
	case syscall.EIO:
		return "revise el disco y lo que dice dmesg"
	case syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM:
		return "la máquina no tiene más por ahora: reintente, o suba el límite (ulimit -n, memoria)"
	}
	return ""
}

// errnoExit tells a disk that failed, is full or refuses from a machine that is
// out of something for a moment.
func errnoExit(errno syscall.Errno) int {
	switch errno {
	case syscall.EIO, syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS, syscall.EFBIG, syscall.EACCES, syscall.EPERM:
		return exitIO
	case syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.EAGAIN, syscall.EINTR:
		return exitTryAgain
	}
	return exitFailed
}
