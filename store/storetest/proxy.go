package storetest

import (
	"io"
	"net"
	"sync"
	"testing"
)

// Direction is one way through a Proxy.
type Direction int

// The two ways.
const (
	ToServer Direction = iota
	ToClient
)

// Proxy passes connections on to a server and cuts them where it is told.
type Proxy struct {
	to    string
	l     net.Listener
	group sync.WaitGroup

	mu    sync.Mutex
	conns map[net.Conn]bool
	armed bool
	way   Direction
	left  int // bytes that still pass that way before everything is cut
	cuts  int
	down  bool
}

// NewProxy listens on the loopback for connections to address.
func NewProxy(t testing.TB, address string) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{to: address, l: l, conns: map[net.Conn]bool{}}
	p.group.Go(p.accept)
	t.Cleanup(func() {
		_ = l.Close()
		p.Cut()
		p.group.Wait()
	})
	return p
}

// Address is where clients connect.
func (p *Proxy) Address() string { return p.l.Addr().String() }

// CutAfter cuts all connections once n more bytes went one way, and only once.
func (p *Proxy) CutAfter(way Direction, n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.armed, p.way, p.left = true, way, n
}

// Cuts is how often CutAfter did.
func (p *Proxy) Cuts() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cuts
}

// Down refuses every connection, or stops to; those that exist are cut.
func (p *Proxy) Down(down bool) {
	p.mu.Lock()
	p.down = down
	p.mu.Unlock()
	if down {
		p.Cut()
	}
}

// Cut ends all connections.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut()
}

func (p *Proxy) cut() {
	for c := range p.conns {
		_ = c.Close()
		delete(p.conns, c)
	}
}

func (p *Proxy) accept() {
	for {
		client, err := p.l.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.to)
		p.mu.Lock()
		if err != nil || p.down {
			p.mu.Unlock()
			_ = client.Close()
			if err == nil {
				_ = server.Close()
			}
			continue
		}
		p.conns[client], p.conns[server] = true, true
		p.mu.Unlock()
		p.group.Go(func() { p.pass(ToServer, client, server) })
		p.group.Go(func() { p.pass(ToClient, server, client) })
	}
}

func (p *Proxy) pass(way Direction, from, to net.Conn) {
	defer from.Close()
	defer to.Close()
	room := make([]byte, 32<<10)
	for {
		n, err := from.Read(room)
		if n > 0 && !p.send(way, to, room[:n]) {
			return
		}
		if err != nil {
			return
		}
	}
}

// send passes on what may still pass, and reports whether the connection lives.
func (p *Proxy) send(way Direction, to io.Writer, b []byte) bool {
	p.mu.Lock()
	last := p.armed && p.way == way && len(b) > p.left
	if p.armed && p.way == way {
		b = b[:min(len(b), p.left)]
		p.left -= len(b)
	}
	if last {
		p.armed = false
		p.cuts++
	}
	p.mu.Unlock()
	_, err := to.Write(b)
	if last {
		p.Cut()
	}
	return err == nil && !last
}
