package bench

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"sync"

	"github.com/valyala/fasthttp"

	"cotejo/store"
)

// What the floor writes for each request: about what a record and its movement
// take when they are stored.
const (
	floorRecord   = 110
	floorMovement = 60
	floorBatch    = 512
)

// floorWrite is one request's turn at the engine.
type floorWrite struct {
	sum  [sha256.Size]byte
	done chan struct{}
}

// floorServer answers every request with the same bytes, after what no answer of
// ours can do without on this machine: the HMAC of the key, the SHA-256 of a
// registro, and two keys written durably together with those of whoever waits.
// It decodes nothing, composes nothing and knows no account.
func floorServer(l net.Listener, body []byte, dir string, registroBytes int) error {
	engine, err := store.OpenPebble(dir, store.PebbleOptions{})
	if err != nil {
		return err
	}
	queue := make(chan *floorWrite, 4096)
	failed := make(chan error, 1)
	go func() { failed <- writeFloor(engine, queue) }()

	writes := sync.Pool{New: func() any { return &floorWrite{done: make(chan struct{}, 1)} }}
	registro := make([]byte, max(registroBytes, sha256.Size))
	s := fasthttp.Server{
		NoDefaultServerHeader: true,
		Handler: func(ctx *fasthttp.RequestCtx) {
			mac := hmac.New(sha256.New, registro[:sha256.Size])
			mac.Write(ctx.Request.Header.Peek("X-Api-Key"))
			mac.Sum(nil)
			w := writes.Get().(*floorWrite)
			w.sum = sha256.Sum256(registro)
			queue <- w
			<-w.done
			writes.Put(w)
			ctx.SetContentType("application/json")
			ctx.SetBody(body)
		},
	}
	go func() { failed <- s.Serve(l) }()
	return <-failed
}

// writeFloor commits what waits, batch by batch, until a write fails.
func writeFloor(engine *store.Pebble, queue <-chan *floorWrite) error {
	epoch, seq, err := engine.Acquire(0)
	if err != nil {
		return err
	}
	var turn []*floorWrite
	for n := uint64(0); ; {
		turn = append(turn[:0], <-queue)
		for len(turn) < floorBatch && len(queue) > 0 {
			turn = append(turn, <-queue)
		}
		seq++
		batch := store.Batch{Epoch: epoch, Seq: seq}
		for _, w := range turn {
			n++
			value := append(make([]byte, 0, floorRecord), w.sum[:]...)[:floorRecord]
			batch.Puts = append(batch.Puts,
				store.Put{Key: binary.BigEndian.AppendUint64([]byte("movimiento"), n), Value: value[:floorMovement]},
				store.Put{Key: binary.BigEndian.AppendUint64([]byte("registro"), n), Value: value})
		}
		if err := engine.Commit(batch); err != nil {
			return err
		}
		for _, w := range turn {
			w.done <- struct{}{}
		}
	}
}

// ServeFloor is the body of the child process that tells how much of
// http_vs_bare this machine allows at all. A registro has so many bytes.
func ServeFloor(addr, bodyFile, dir string, registroBytes int) error {
	body, err := os.ReadFile(bodyFile)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	return fmt.Errorf("servidor de piso: %w", floorServer(l, body, dir, registroBytes))
}
