// Package admin is how the command line speaks to the process that owns a data
// directory: one JSON request and its answer over a Unix socket inside that
// directory. Whoever may enter the directory may administer it; nothing of this
// is reachable over the network.
//
// A command is a handler by name. The same handlers run in process when no
// server owns the directory: see Commands.Run. server.go and client.go are the
// two ends of the socket; verify.go lays stored answers beside their editions.
//
// It promises that a command that was carried out is answered, also while the
// server closes, and that a caller whose connection broke is told that it does
// not know: ErrLost.
package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

var (
	// ErrNoServer says that no process listens in the data directory.
	ErrNoServer = errors.New("admin: ningún servidor usa esta carpeta de datos")
	// ErrLost says that the connection ended after the command was sent and
	// before its answer came: it may have been carried out or not.
	ErrLost = errors.New("admin: se perdió la conexión con el servidor")
)

// Error is a failed command as its caller sees it.
type Error struct {
	Code    int    `json:"code"` // exit code of the command line
	Message string `json:"message"`
}

func (e *Error) Error() string { return e.Message }

// Handler executes one command. ctx ends when the caller goes away or the
// server closes; an effect that is already durable is answered all the same.
// progress may be called any number of times, from any goroutine, until the
// handler returns, with a line for the person who waits.
type Handler func(ctx context.Context, args json.RawMessage, progress func(string)) (any, error)

// Commands are the handlers by name.
type Commands map[string]Handler

type request struct {
	Command string          `json:"command"`
	Args    json.RawMessage `json:"args"`
}

// reply is one line of an answer: progress lines, then a result or an error.
type reply struct {
	Progress string          `json:"progress,omitempty"`
	Result   json.RawMessage `json:"result,omitempty"`
	Error    *Error          `json:"error,omitempty"`
}

// Run executes a command in this process and decodes its result into result,
// exactly as Call does over the socket.
func (c Commands) Run(ctx context.Context, command string, args, result any, progress func(string)) error {
	raw, err := json.Marshal(args)
	if err != nil {
		return err
	}
	handler, ok := c[command]
	if !ok {
		return fmt.Errorf("admin: no existe el comando %q", command)
	}
	value, err := handler(ctx, raw, progress)
	if err != nil {
		return err
	}
	if raw, err = json.Marshal(value); err != nil {
		return err
	}
	return json.Unmarshal(raw, result)
}

const socketName = "admin.sock"

// socketPath names the socket through an open directory: the address of a Unix
// socket holds 108 bytes, and data directories may lie deeper than that.
func socketPath(dir string) (*os.File, string, error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, "", err
	}
	return d, filepath.Join(fmt.Sprintf("/proc/self/fd/%d", d.Fd()), socketName), nil
}
