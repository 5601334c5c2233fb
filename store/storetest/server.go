package storetest

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Server is a PostgreSQL server of one test: it may be stopped, killed and started
// again. It syncs what it writes and checks its pages.
type Server struct {
	t    testing.TB
	bin  string
	dir  string
	port int
	as   *syscall.SysProcAttr
}

// StartPostgres makes a new server, on a file system in memory where there is one.
// It goes with the test, which is skipped when COTEJO_POSTGRES_BIN does not name the
// folder of PostgreSQL's programs.
func StartPostgres(t testing.TB) *Server {
	t.Helper()
	s := &Server{t: t, bin: os.Getenv("COTEJO_POSTGRES_BIN")}
	if s.bin == "" {
		t.Skip("COTEJO_POSTGRES_BIN is not set: the folder of PostgreSQL's programs, as /usr/lib/postgresql/15/bin")
	}
	root := "/dev/shm"
	if info, err := os.Stat(root); err != nil || !info.IsDir() {
		root = ""
	}
	var err error
	if s.dir, err = os.MkdirTemp(root, "cotejo-postgres-"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = s.control("stop", "-m", "immediate")
		if err := os.RemoveAll(s.dir); err != nil {
			t.Error(err)
		}
	})
	if os.Geteuid() == 0 { // the server refuses to be root
		postgres, err := user.Lookup("postgres")
		if err != nil {
			t.Fatal(err)
		}
		uid, _ := strconv.Atoi(postgres.Uid)
		gid, _ := strconv.Atoi(postgres.Gid)
		s.as = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
		if err := os.Chown(s.dir, uid, gid); err != nil {
			t.Fatal(err)
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.port = l.Addr().(*net.TCPAddr).Port
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	s.run("initdb", "-k", "-A", "trust", "-U", "postgres", "--no-locale", "-E", "UTF8", "--no-sync", "-D", s.data())
	s.Start()
	return s
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

// Address is where the server listens.
func (s *Server) Address() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }

// URL is a database of the server, at another address if one is given.
func (s *Server) URL(address string) string {
	if address == "" {
		address = s.Address()
	}
	return fmt.Sprintf("postgres://postgres@%s/postgres?sslmode=disable", address)
}

// Start starts the server and waits until it answers.
func (s *Server) Start() {
	s.t.Helper()
	if err := s.control("start", "-l", filepath.Join(s.dir, "log"),
		"-o", fmt.Sprintf("-c port=%d -c listen_addresses=127.0.0.1 -c unix_socket_directories=%s -c max_connections=120 -c fsync=on", s.port, s.dir)); err != nil {
		log, _ := os.ReadFile(filepath.Join(s.dir, "log"))
		s.t.Fatalf("%v\n%s", err, log)
	}
}

// Kill stops the server as a loss of power would, but for what the kernel holds.
func (s *Server) Kill() {
	s.t.Helper()
	if err := s.control("stop", "-m", "immediate"); err != nil {
		s.t.Fatal(err)
	}
}

// Run executes a statement as the administrator.
func (s *Server) Run(sql string) {
	s.t.Helper()
	Execute(s.t, s.URL(""), sql)
}

// Ask executes a statement as the administrator and returns the text of its one
// value.
func (s *Server) Ask(sql string) (value string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.URL(""))
	if err != nil {
		s.t.Fatal(err)
	}
	defer conn.Close(ctx)
	if err := conn.QueryRow(ctx, "select ("+sql+")::text").Scan(&value); err != nil {
		s.t.Fatalf("%s: %v", sql, err)
	}
	return value
}

func (s *Server) run(program string, args ...string) {
	s.t.Helper()
	if err := s.try(program, args...); err != nil {
		s.t.Fatal(err)
	}
}

func (s *Server) control(args ...string) error {
	return s.try("pg_ctl", append([]string{"-D", s.data(), "-w", "-s"}, args...)...)
}

func (s *Server) try(program string, args ...string) error {
	cmd := exec.Command(filepath.Join(s.bin, program), args...)
	cmd.SysProcAttr, cmd.Dir = s.as, s.dir
	// A server inherits the output: of a pipe, the end would never come.
	out, err := os.CreateTemp("", "cotejo-postgres-*")
	if err != nil {
		return err
	}
	defer os.Remove(out.Name())
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Run(); err != nil {
		text, _ := os.ReadFile(out.Name())
		return fmt.Errorf("%s: %w\n%s", program, err, text)
	}
	return nil
}
