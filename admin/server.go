package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"runtime/debug"
	"sync"
	"time"
)

const (
	maxRequest = 1 << 20 // bytes
	maxCallers = 64      // at once; one more is told to try again
	// requestPatience bounds how long a caller may take to say what it wants,
	// replyPatience how long one line of the answer may wait to be read.
	requestPatience = 10 * time.Second
	replyPatience   = 10 * time.Second
	// closePatience bounds how long Close waits for running commands.
	closePatience = 25 * time.Second
)

// exitTryAgain is the code for a caller that was not served.
const exitTryAgain = 75

// Server answers commands until it is closed.
type Server struct {
	commands Commands
	code     func(error) int
	log      *slog.Logger
	listener net.Listener
	dir      *os.File
	ctx      context.Context // ends when Close begins
	cancel   context.CancelFunc
	done     sync.WaitGroup // the accepting goroutine and every caller's

	mu      sync.Mutex
	callers map[net.Conn]struct{} // under mu
}

// Listen starts a server in the data directory dir. The caller must own the
// directory (it holds the store's lock), so a socket that is already there was
// left by a process that died. code turns an error into an exit code; log gets
// what a caller cannot be told.
func Listen(dir string, commands Commands, code func(error) int, log *slog.Logger) (*Server, error) {
	d, path, err := socketPath(dir)
	if err != nil {
		return nil, err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, errors.Join(err, d.Close())
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("socket de administración: %w", err), d.Close())
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("socket de administración: %w", err), l.Close(), d.Close())
	}
	s := &Server{commands: commands, code: code, log: log, listener: l, dir: d, callers: map[net.Conn]struct{}{}}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.done.Add(1)
	go s.accept()
	return s, nil
}

// Close stops listening, ends the context of running commands, and waits until
// they have answered: what they committed must not lose its answer. After 25
// seconds it cuts the connections and says so; a command may then still run.
func (s *Server) Close() error { return s.closeWithin(closePatience) }

func (s *Server) closeWithin(patience time.Duration) error {
	s.cancel()
	err := s.listener.Close()
	s.eachCaller(func(c net.Conn) { _ = c.SetReadDeadline(time.Now()) }) // who has not asked yet
	finished := make(chan struct{})
	go func() {
		s.done.Wait()
		close(finished)
	}()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-finished:
	case <-timer.C:
		s.eachCaller(func(c net.Conn) { _ = c.Close() })
		err = errors.Join(err, errors.New("socket de administración: un comando no terminó a tiempo"))
	}
	return errors.Join(err, s.dir.Close())
}

func (s *Server) eachCaller(fn func(net.Conn)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.callers {
		fn(c)
	}
}

// enter counts a caller in; false when there are too many.
func (s *Server) enter(c net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.callers) >= maxCallers {
		return false
	}
	s.callers[c] = struct{}{}
	deadline := time.Now()
	if s.ctx.Err() == nil { // else Close has looked at the callers already
		deadline = deadline.Add(requestPatience)
	}
	_ = c.SetReadDeadline(deadline)
	return true
}

func (s *Server) leave(c net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.callers, c)
}

func (s *Server) accept() {
	defer s.done.Done()
	for {
		conn, err := s.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		} else if err != nil {
			// Out of descriptors, say: callers wait in the queue meanwhile.
			s.log.Error("socket de administración", "error", err)
			select {
			case <-s.ctx.Done():
				return
			case <-time.After(time.Second):
				continue
			}
		}
		answer := &answerer{conn: conn, enc: json.NewEncoder(conn)}
		if !s.enter(conn) {
			answer.send(reply{Error: &Error{exitTryAgain, "demasiados comandos a la vez: reintente"}})
			_ = conn.Close()
			continue
		}
		s.done.Add(1)
		go func() {
			defer s.done.Done()
			defer s.leave(conn)
			defer conn.Close()
			s.serve(conn, answer)
		}()
	}
}

// answerer writes the lines of one answer.
type answerer struct {
	mu     sync.Mutex // progress may come from any goroutine of the handler
	conn   net.Conn
	enc    *json.Encoder
	broken bool               // a line was cut off; nothing may follow it
	gone   context.CancelFunc // tells the handler; nil before there is one
}

// send drops the line when the caller has gone: the command's effects stand.
func (a *answerer) send(r reply) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.broken {
		return
	}
	err := a.conn.SetWriteDeadline(time.Now().Add(replyPatience))
	if err == nil {
		err = a.enc.Encode(r)
	}
	if err != nil {
		a.broken = true
		if a.gone != nil {
			a.gone()
		}
	}
}

func (s *Server) serve(conn net.Conn, answer *answerer) {
	var req request
	if err := json.NewDecoder(io.LimitReader(conn, maxRequest)).Decode(&req); err != nil {
		if s.ctx.Err() != nil {
			answer.send(reply{Error: &Error{exitTryAgain, "el servidor se está cerrando: no se hizo nada, reintente"}})
		} else {
			answer.send(reply{Error: &Error{1, "petición ilegible: " + err.Error()}})
		}
		return
	}
	ctx, gone := context.WithCancel(s.ctx)
	defer gone()
	answer.gone = gone
	// A caller says nothing more: what ends this reading is its going away.
	_ = conn.SetReadDeadline(time.Time{})
	s.done.Go(func() {
		_, _ = io.Copy(io.Discard, conn)
		gone()
	})

	var result json.RawMessage
	if err := s.run(ctx, &req, &result, answer); err != nil {
		answer.send(reply{Error: &Error{s.code(err), err.Error()}})
		return
	}
	answer.send(reply{Result: result})
}

// run executes a command; a panic of its handler is an error of that command
// alone.
func (s *Server) run(ctx context.Context, req *request, result *json.RawMessage, answer *answerer) (err error) {
	defer func() {
		if r := recover(); r != nil {
			s.log.Error("falla interna en un comando", "comando", req.Command, "falla", fmt.Sprint(r), "pila", string(debug.Stack()))
			err = fmt.Errorf("falla interna en «%s»: revise el registro del servidor", req.Command)
		}
	}()
	return s.commands.Run(ctx, req.Command, req.Args, result, func(line string) { answer.send(reply{Progress: line}) })
}
