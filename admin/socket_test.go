package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

var errKnown = errors.New("se acabó")

func codeOf(err error) int {
	if errors.Is(err, errKnown) {
		return 42
	}
	return 1
}

func listen(t *testing.T, dir string, commands Commands) *Server {
	t.Helper()
	s, err := Listen(dir, commands, codeOf, slog.New(slog.NewTextHandler(io.Discard, nil)))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func handler(f func(ctx context.Context, progress func(string)) (any, error)) Handler {
	return func(ctx context.Context, _ json.RawMessage, progress func(string)) (any, error) {
		return f(ctx, progress)
	}
}

func ignore(string) {}

// dial connects as a caller that speaks for itself.
func dial(t *testing.T, dir string) net.Conn {
	t.Helper()
	d, path, err := socketPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

func TestACommandIsAnswered(t *testing.T) {
	defer goleak.VerifyNone(t)
	// Deeper than the 108 bytes that the address of a socket holds.
	dir := filepath.Join(t.TempDir(), strings.Repeat("carpeta-profunda/", 12))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := Call(t.Context(), dir, "suma", nil, new(int), ignore); !errors.Is(err, ErrNoServer) {
		t.Fatalf("without a server: %v", err)
	}
	commands := Commands{
		"suma": func(_ context.Context, raw json.RawMessage, progress func(string)) (any, error) {
			var numbers []int
			if err := json.Unmarshal(raw, &numbers); err != nil {
				return nil, err
			}
			sum := 0
			for _, n := range numbers {
				sum += n
				progress(fmt.Sprint("van ", sum))
			}
			return sum, nil
		},
		"falla": handler(func(context.Context, func(string)) (any, error) { return nil, fmt.Errorf("aquí: %w", errKnown) }),
		"nada":  handler(func(context.Context, func(string)) (any, error) { return nil, nil }),
		"rompe": handler(func(context.Context, func(string)) (any, error) { panic("roto") }),
	}
	s := listen(t, dir, commands)
	defer s.Close()
	if info, err := os.Stat(filepath.Join(dir, socketName)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("socket: %v, %v; want mode 0600", info, err)
	}

	var lines []string
	var sum int
	collect := func(line string) { lines = append(lines, line) }
	if err := Call(t.Context(), dir, "suma", []int{1, 2, 3}, &sum, collect); err != nil || sum != 6 {
		t.Fatalf("suma = %d, %v", sum, err)
	}
	if want := []string{"van 1", "van 3", "van 6"}; !slices.Equal(lines, want) {
		t.Errorf("progress = %q, want %q", lines, want)
	}
	if err := Call(t.Context(), dir, "nada", nil, new(any), ignore); err != nil {
		t.Errorf("a result of null: %v", err)
	}
	// In process, the same.
	sum = 0
	if err := commands.Run(t.Context(), "suma", []int{4, 5}, &sum, ignore); err != nil || sum != 9 {
		t.Errorf("in process: %d, %v", sum, err)
	}

	fails := func(command string, code int, message string) {
		t.Helper()
		var remote *Error
		err := Call(t.Context(), dir, command, nil, new(int), ignore)
		if !errors.As(err, &remote) || remote.Code != code || !strings.Contains(remote.Message, message) {
			t.Errorf("%s: %v; want code %d and %q", command, err, code, message)
		}
	}
	fails("falla", 42, "aquí: se acabó")
	fails("otro", 1, "no existe el comando")
	fails("rompe", 1, "falla interna en «rompe»")
	if err := Call(t.Context(), dir, "suma", []int{1}, &sum, ignore); err != nil {
		t.Errorf("after a panic: %v", err)
	}
}

func TestWhatIsNoRequestIsRefused(t *testing.T) {
	defer goleak.VerifyNone(t)
	dir := t.TempDir()
	s := listen(t, dir, Commands{})
	defer s.Close()
	f := func(text string) {
		t.Helper()
		conn := dial(t, dir)
		go func() { io.WriteString(conn, text); conn.(*net.UnixConn).CloseWrite() }()
		answer, err := io.ReadAll(conn)
		if !bytes.Contains(answer, []byte("petición ilegible")) {
			t.Errorf("%.20q: %q, %v", text, answer, err)
		}
	}
	f("")
	f("no es JSON\n")
	f(`{"command":`)
	f(`{"command":"` + strings.Repeat("x", maxRequest) + `"}`)
}

func TestACallerThatGoesAwayEndsItsCommand(t *testing.T) {
	defer goleak.VerifyNone(t)
	dir := t.TempDir()
	started, ended := make(chan struct{}, 2), make(chan error, 2)
	s := listen(t, dir, Commands{"espera": handler(func(ctx context.Context, _ func(string)) (any, error) {
		started <- struct{}{}
		<-ctx.Done()
		ended <- context.Cause(ctx)
		return nil, ctx.Err()
	})})
	defer s.Close()
	wait := func(what string) {
		t.Helper()
		select {
		case <-ended:
		case <-time.After(20 * time.Second):
			t.Fatalf("the command outlives %s", what)
		}
	}

	// The caller's context ends: it does not know whether the command was done.
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-started; cancel() }()
	err := Call(ctx, dir, "espera", nil, new(any), ignore)
	if !errors.Is(err, ErrLost) || !errors.Is(err, context.Canceled) {
		t.Errorf("Call = %v; want ErrLost and context.Canceled", err)
	}
	wait("a caller that gave up")

	// The caller dies.
	conn := dial(t, dir)
	io.WriteString(conn, `{"command":"espera"}`+"\n")
	<-started
	conn.Close()
	wait("a caller that died")
}

// TestClosingAnswersWhatWasCommitted closes while a command is between its
// commit and its answer.
func TestClosingAnswersWhatWasCommitted(t *testing.T) {
	defer goleak.VerifyNone(t)
	dir := t.TempDir()
	committed := make(chan struct{})
	s := listen(t, dir, Commands{"abona": handler(func(ctx context.Context, _ func(string)) (any, error) {
		close(committed)
		<-ctx.Done() // Close has begun
		return 500, nil
	})})
	idle := dial(t, dir) // a caller that never asks must not hold Close
	closed := make(chan error, 1)
	go func() { <-committed; closed <- s.Close() }()
	var result int
	if err := Call(t.Context(), dir, "abona", nil, &result, ignore); err != nil || result != 500 {
		t.Errorf("Call = %d, %v; want the answer of the committed command", result, err)
	}
	select {
	case err := <-closed:
		if err != nil {
			t.Errorf("Close = %v", err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("Close hangs")
	}
	if answer, err := io.ReadAll(idle); err == nil && !bytes.Contains(answer, []byte("no se hizo nada")) {
		t.Errorf("idle caller: %q", answer)
	}
	if err := Call(t.Context(), dir, "abona", nil, &result, ignore); !errors.Is(err, ErrNoServer) {
		t.Errorf("after Close: %v; want ErrNoServer", err)
	}
}

// TestClosingIsBounded has a command that ends when the test lets it.
func TestClosingIsBounded(t *testing.T) {
	defer goleak.VerifyNone(t)
	dir := t.TempDir()
	started, release := make(chan struct{}), make(chan struct{})
	s := listen(t, dir, Commands{"terco": handler(func(context.Context, func(string)) (any, error) {
		close(started)
		<-release
		return nil, nil
	})})
	lost := make(chan error, 1)
	go func() { lost <- Call(context.Background(), dir, "terco", nil, new(any), ignore) }()
	<-started
	if err := s.closeWithin(10 * time.Millisecond); err == nil {
		t.Error("Close says nothing of the command that goes on")
	}
	if err := <-lost; !errors.Is(err, ErrLost) {
		t.Errorf("Call = %v; want ErrLost", err)
	}
	close(release)
	s.done.Wait()
}

// TestAServerThatDiesLeavesDoubt cuts the connection in the place of the answer.
func TestAServerThatDiesLeavesDoubt(t *testing.T) {
	dir := t.TempDir()
	l, err := net.Listen("unix", filepath.Join(dir, socketName))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		conn, err := l.Accept()
		if err == nil {
			conn.Read(make([]byte, 1))
			conn.Close()
		}
	}()
	if err := Call(t.Context(), dir, "abona", nil, new(any), ignore); !errors.Is(err, ErrLost) {
		t.Errorf("Call = %v; want ErrLost", err)
	}
}

// TestASocketLeftBehindIsReplaced starts after a process that was killed.
func TestASocketLeftBehindIsReplaced(t *testing.T) {
	dir := t.TempDir()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, socketName), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	l.Close()
	if err := Call(t.Context(), dir, "x", nil, new(any), ignore); !errors.Is(err, ErrNoServer) {
		t.Errorf("dead socket: %v; want ErrNoServer", err)
	}
	s := listen(t, dir, Commands{"x": handler(func(context.Context, func(string)) (any, error) { return 1, nil })})
	defer s.Close()
	if err := Call(t.Context(), dir, "x", nil, new(int), ignore); err != nil {
		t.Error(err)
	}
}
