// Package admin is how the command line speaks to the process that owns a data
// directory: one JSON request and its answer over a Unix socket inside that
// directory. Whoever may enter the directory may administer it; nothing of this
// is reachable over the network.
//
// A command is a handler by name. The same handlers run in process when no
// server owns the directory: see Commands.Run.
package admin

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
)

// ErrNoServer says that no process listens in the data directory.
var ErrNoServer = errors.New("admin: ningún servidor usa esta carpeta de datos")

const (
	socketName = "admin.sock"
	maxRequest = 1 << 20 // bytes
)

// Error is a failed command as its caller sees it.
type Error struct {
	Code    int    `json:"code"` // exit code of the command line
	Message string `json:"message"`
}

func (e *Error) Error() string { return e.Message }

// Handler executes one command. progress may be called any number of times with
// a line for the person who waits; it is safe to ignore.
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

// Server answers commands until it is closed.
type Server struct {
	commands Commands
	code     func(error) int
	listener net.Listener
	dir      *os.File
	cancel   context.CancelFunc
	done     sync.WaitGroup
}

// Listen starts a server in the data directory dir. The caller must own the
// directory (it holds the store's lock), so a socket that is already there was
// left by a process that died. code turns an error into an exit code.
func Listen(dir string, commands Commands, code func(error) int) (*Server, error) {
	d, path, err := socketPath(dir)
	if err != nil {
		return nil, err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, errors.Join(err, d.Close())
	}
	l, err := net.Listen("unix", path)
	if err == nil {
		err = os.Chmod(path, 0o600)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("socket de administración: %w", err), d.Close())
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &Server{commands: commands, code: code, listener: l, dir: d, cancel: cancel}
	s.done.Add(1)
	go s.accept(ctx)
	return s, nil
}

// Close stops listening, cancels running commands and waits for them.
func (s *Server) Close() error {
	s.cancel()
	err := s.listener.Close()
	s.done.Wait()
	return errors.Join(err, s.dir.Close())
}

func (s *Server) accept(ctx context.Context) {
	defer s.done.Done()
	for {
		conn, err := s.listener.Accept()
		if err != nil {
			return // closed
		}
		s.done.Add(1)
		go func() {
			defer s.done.Done()
			defer conn.Close()
			// A closed connection is a caller that gave up.
			stop := context.AfterFunc(ctx, func() { conn.Close() })
			defer stop()
			s.serve(ctx, conn)
		}()
	}
}

func (s *Server) serve(ctx context.Context, conn net.Conn) {
	var mu sync.Mutex // progress may come from any goroutine of the handler
	enc := json.NewEncoder(conn)
	send := func(r reply) {
		mu.Lock()
		defer mu.Unlock()
		_ = enc.Encode(r) // the caller may have gone; the command's effects stand
	}
	var req request
	if err := json.NewDecoder(io.LimitReader(conn, maxRequest)).Decode(&req); err != nil {
		send(reply{Error: &Error{1, "petición ilegible: " + err.Error()}})
		return
	}
	var result json.RawMessage
	err := s.commands.Run(ctx, req.Command, req.Args, &result, func(line string) { send(reply{Progress: line}) })
	if err != nil {
		send(reply{Error: &Error{s.code(err), err.Error()}})
		return
	}
	send(reply{Result: result})
}

// Call asks the server of a data directory to execute a command. It returns
// ErrNoServer when none listens, *Error when the command failed.
func Call(ctx context.Context, dir, command string, args, result any, progress func(string)) error {
	raw, err := json.Marshal(args)
	if err != nil {
		return err
	}
	d, path, err := socketPath(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", path)
	if errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.ECONNREFUSED) {
		return ErrNoServer
	} else if err != nil {
		return err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	if err := json.NewEncoder(conn).Encode(request{command, raw}); err != nil {
		return err
	}
	dec := json.NewDecoder(bufio.NewReader(conn))
	for {
		var r reply
		switch err := dec.Decode(&r); {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			return fmt.Errorf("el servidor cortó la respuesta: %w", err)
		case r.Error != nil:
			return r.Error
		case r.Result != nil:
			return json.Unmarshal(r.Result, result)
		default:
			progress(r.Progress)
		}
	}
}

// socketPath names the socket through an open directory: the address of a Unix
// socket holds 108 bytes, and data directories may lie deeper than that.
func socketPath(dir string) (*os.File, string, error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, "", err
	}
	return d, filepath.Join(fmt.Sprintf("/proc/self/fd/%d", d.Fd()), socketName), nil
}
