package bench

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
)

const (
	httpConnections = 64
	httpHits        = 3   // of 100 requests: companies that are on the list
	clockTicks      = 100 // USER_HZ, fixed on Linux
	answerPatience  = 10 * time.Second
	// startPatience: a server reads and hashes every file of its edition first.
	startPatience = 3 * time.Minute
)

// bareServer answers every request with the same bytes: what an HTTP server
// costs that does nothing. It runs until its process is killed.
func bareServer(l net.Listener, body []byte) error {
	s := fasthttp.Server{
		NoDefaultServerHeader: true,
		Handler: func(ctx *fasthttp.RequestCtx) {
			ctx.SetContentType("application/json")
			ctx.SetBody(body)
		},
	}
	return s.Serve(l)
}

// ServeBare is the body of the child process that the http figures are
// measured against.
func ServeBare(addr, bodyFile string) error {
	body, err := os.ReadFile(bodyFile)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	return bareServer(l, body)
}

// child is a server in a process of its own.
type child struct {
	cmd  *exec.Cmd
	addr string
	log  string  // file with what it wrote on stderr
	used float64 // CPU seconds up to the end of its last window
}

// startChild runs the program again as a server of its own. What it writes goes
// to a file in dir: a pipe to this process would cost time in both.
func startChild(ctx context.Context, dir string, command func(ctx context.Context, args ...string) *exec.Cmd, args ...string) (*child, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	c := &child{addr: l.Addr().String(), log: filepath.Join(dir, args[0]+".log")}
	if err := l.Close(); err != nil {
		return nil, err
	}
	log, err := os.Create(c.log)
	if err != nil {
		return nil, err
	}
	defer log.Close() // the child has its own
	c.cmd = command(ctx, append(args, "--addr", c.addr)...)
	c.cmd.Stdout, c.cmd.Stderr = nil, log
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	for deadline := time.Now().Add(startPatience); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if conn, err := net.Dial("tcp", c.addr); err == nil {
			return c, conn.Close()
		}
	}
	said, _ := os.ReadFile(c.log) // empty when it cannot be read
	return nil, errors.Join(fmt.Errorf("%v no escucha: %s", args, said), c.stop())
}

// stop kills: what the child has acknowledged is durable, and the bench throws
// its data away.
func (c *child) stop() error {
	if err := c.cmd.Process.Kill(); err != nil {
		return err
	}
	_ = c.cmd.Wait() // says that it was killed
	return nil
}

// cpuSeconds returns the processor time that the child has used so far.
func (c *child) cpuSeconds() (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", c.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	// The second field is the name in parentheses and may hold blanks.
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	user, err1 := strconv.Atoi(fields[11])
	system, err2 := strconv.Atoi(fields[12])
	return float64(user+system) / clockTicks, errors.Join(err1, err2)
}

// window returns the processor time that the child has used since the end of its
// window before: what it does between two windows (a compaction that an earlier
// one left to be done) is paid for by the requests that caused it.
func (c *child) window() (float64, error) {
	used, err := c.cpuSeconds()
	since := used - c.used
	c.used = used
	return since, err
}

// anonymousMB returns the child's resident anonymous memory.
func (c *child) anonymousMB() (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if kb, ok := strings.CutPrefix(line, "RssAnon:"); ok {
			n, err := strconv.ParseFloat(strings.Fields(kb)[0], 64)
			return n / 1024, err
		}
	}
	return 0, errors.New("el núcleo no dice RssAnon")
}

// side is one server of a comparison.
type side struct {
	name              string
	server            *child
	perCPU, perSecond []float64 // answers, one value for each repeat
}

// asking appends the path of the next request.
type asking func(dst []byte, random *rand.Rand) []byte

// compare asks the same of every side in turn, repeats times after a warm-up.
func compare(ctx context.Context, h Host, key string, next asking, sides []*side, repeats int, window time.Duration) error {
	for i := range repeats + 1 {
		h.Progress("HTTP, vuelta %d de %d", i, repeats)
		for _, side := range sides {
			if err := side.run(ctx, key, next, window, i > 0); err != nil { // the first is a warm-up
				return err
			}
		}
	}
	return nil
}

// run asks the side for as long as window; counted says whether it is more than a
// warm-up.
func (s *side) run(ctx context.Context, key string, next asking, window time.Duration, counted bool) error {
	start := time.Now()
	n, err := load(ctx, s.server.addr, key, next, window)
	wall := time.Since(start).Seconds()
	cpu, errCPU := s.server.window()
	if err := errors.Join(err, errCPU); err != nil {
		return fmt.Errorf("%s: %w", s.name, err)
	}
	if counted {
		s.perCPU, s.perSecond = append(s.perCPU, float64(n)/cpu), append(s.perSecond, float64(n)/wall)
	}
	return nil
}

// load asks addr from all connections for a while and returns how many answers
// came. Any answer but 200 fails it.
func load(ctx context.Context, addr, key string, next asking, duration time.Duration) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, duration)
	defer cancel()
	var answers atomic.Int64
	var wg sync.WaitGroup
	failures := make(chan error, httpConnections)
	for i := range httpConnections {
		wg.Add(1)
		go func() {
			defer wg.Done()
			if err := ask(ctx, addr, key, next, rand.New(rand.NewPCG(uint64(i), 7)), &answers); err != nil {
				failures <- err
				cancel()
			}
		}()
	}
	wg.Wait()
	close(failures)
	return int(answers.Load()), <-failures
}

func ask(ctx context.Context, addr, key string, next asking, random *rand.Rand, answers *atomic.Int64) error {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	if deadline, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(deadline.Add(answerPatience)); err != nil {
			return err
		}
	}
	reader := bufio.NewReaderSize(conn, 16<<10)
	var request []byte
	var response fasthttp.Response
	for ctx.Err() == nil {
		request = next(append(request[:0], "GET "...), random)
		request = fmt.Appendf(request, " HTTP/1.1\r\nHost: %s\r\nX-Api-Key: %s\r\n\r\n", addr, key)
		if _, err := conn.Write(request); err != nil {
			return err
		}
		if err := response.Read(reader); err != nil {
			return err
		}
		if response.StatusCode() != fasthttp.StatusOK {
			line, _, _ := bytes.Cut(request, []byte{'\r'})
			return fmt.Errorf("%s: %d %s", line, response.StatusCode(), response.Body())
		}
		answers.Add(1)
	}
	return nil
}

// singleAnswer returns the body of what a path is answered.
func singleAnswer(addr, key, path string) ([]byte, error) {
	request := fasthttp.AcquireRequest()
	defer fasthttp.ReleaseRequest(request)
	response := fasthttp.AcquireResponse()
	defer fasthttp.ReleaseResponse(response)
	request.SetRequestURI("http://" + addr + path)
	request.Header.Set("X-Api-Key", key)
	if err := fasthttp.Do(request, response); err != nil {
		return nil, err
	}
	if response.StatusCode() != fasthttp.StatusOK {
		return nil, fmt.Errorf("%s: %d %s", path, response.StatusCode(), response.Body())
	}
	return bytes.Clone(response.Body()), nil
}

// writeBody leaves the typical answer where the bare server reads it.
func writeBody(dir string, body []byte) (string, error) {
	path := filepath.Join(dir, "answer.json")
	return path, os.WriteFile(path, body, 0o600)
}
