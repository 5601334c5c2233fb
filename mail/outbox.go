package mail

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/VictoriaMetrics/metrics"
)

var (
	// ErrFull says that too many messages wait already; this one was not taken.
	ErrFull = errors.New("mail: demasiados correos en espera")
	// ErrClosed says that the outbox takes nothing any more.
	ErrClosed = errors.New("mail: el servicio se está cerrando")
)

var (
	sentTotal    = metrics.NewCounter(`cotejo_mail_total{result="enviado"}`)
	retriedTotal = metrics.NewCounter(`cotejo_mail_total{result="reintento"}`) // attempts that failed and come again
	refusedTotal = metrics.NewCounter(`cotejo_mail_total{result="rechazado"}`) // by the server, for good
	lostTotal    = metrics.NewCounter(`cotejo_mail_total{result="perdido"}`)   // given up, or waiting when the process ended
	staleTotal   = metrics.NewCounter(`cotejo_mail_total{result="sustituido"}`)
	waitingGauge = metrics.NewGauge("cotejo_mail_waiting", nil)
)

const (
	maxWaiting     = 256 // messages
	maxConnections = 4
)

// waits are between the attempts at one message; the last goes on. A server that
// defers strangers (greylisting) takes them after some minutes.
var waits = []time.Duration{time.Minute, 5 * time.Minute, 15 * time.Minute, 30 * time.Minute}

// Outbox sends messages in the background and tries again what may go better. It
// is in memory only: what still waits when the process ends is lost, and counted.
// It is safe for concurrent use.
type Outbox struct {
	send  func(context.Context, Message) error
	log   *slog.Logger
	slots chan struct{} // one for each connection

	stop    chan struct{}   // closed by Close: nothing waits any more
	sending context.Context // of the attempts
	cut     context.CancelFunc
	done    sync.WaitGroup

	mu      sync.Mutex // guards the rest
	closed  bool
	waiting int
	newest  map[string]chan struct{} // by subject matter: closed when a newer message comes
	failing string                   // why the last attempt failed; "" when it did not
}

// NewOutbox sends through send, which is Sender.Send but for tests.
func NewOutbox(send func(context.Context, Message) error, log *slog.Logger) *Outbox {
	o := &Outbox{send: send, log: log, slots: make(chan struct{}, maxConnections), stop: make(chan struct{}), newest: map[string]chan struct{}{}}
	o.sending, o.cut = context.WithCancel(context.Background())
	return o
}

// Add takes a message over and returns at once: ErrFull, ErrClosed, or the error
// of Message.Check. It is tried until it is sent, until the server refuses it for
// good, for as long as life, or until another message about the same comes: what it
// says is then no longer so.
func (o *Outbox) Add(about string, m Message, life time.Duration) error {
	if err := m.Check(); err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.closed:
		return ErrClosed
	case o.waiting >= maxWaiting:
		lostTotal.Inc()
		return ErrFull
	}
	if before := o.newest[about]; before != nil {
		close(before)
	}
	stale := make(chan struct{})
	o.newest[about] = stale
	o.waiting++
	waitingGauge.Inc()
	o.done.Go(func() {
		o.deliver(m, life, stale)
		waitingGauge.Dec()
		o.mu.Lock()
		defer o.mu.Unlock()
		o.waiting--
		if o.newest[about] == stale {
			delete(o.newest, about)
		}
	})
	return nil
}

func (o *Outbox) deliver(m Message, life time.Duration, stale <-chan struct{}) {
	end := time.NewTimer(life)
	defer end.Stop()
	for attempt := 0; ; attempt++ {
		select {
		case o.slots <- struct{}{}:
		case <-stale:
			staleTotal.Inc()
			return
		case <-end.C:
			o.lost("esperó demasiado")
			return
		case <-o.stop:
			o.lost("el servicio se cierra")
			return
		}
		err := o.send(o.sending, m)
		<-o.slots
		var failed *Error
		switch {
		case err == nil:
			sentTotal.Inc()
			o.fails("")
			return
		case errors.As(err, &failed) && failed.Refused:
			refusedTotal.Inc()
			o.fails("") // the server works
			o.log.Warn("correo rechazado por el servidor de su destinatario; no se repite", "error", err.Error())
			return
		}
		retriedTotal.Inc()
		o.fails(err.Error())
		o.log.Error("correo: un envío falló y se repite; el registro sigue pendiente", "intento", attempt+1, "error", err.Error())
		again := time.NewTimer(waits[min(attempt, len(waits)-1)])
		select {
		case <-again.C:
		case <-stale:
			again.Stop()
			staleTotal.Inc()
			return
		case <-end.C:
			again.Stop()
			o.lost("no salió a tiempo")
			return
		case <-o.stop:
			again.Stop()
			o.lost("el servicio se cierra")
			return
		}
	}
}

func (o *Outbox) lost(why string) {
	lostTotal.Inc()
	o.log.Error("correo sin enviar: quien se registra puede pedir otro código", "motivo", why)
}

func (o *Outbox) fails(why string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.failing = why
}

// Failing says why the last attempt failed, "" when it went well or there was none.
// A recipient that was refused is no failure.
func (o *Outbox) Failing() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.failing
}

// Close takes nothing more, drops what waits for another attempt, and lets running
// attempts end, until ctx does. It may be called more than once.
func (o *Outbox) Close(ctx context.Context) {
	o.mu.Lock()
	if !o.closed {
		o.closed = true
		close(o.stop)
	}
	o.mu.Unlock()
	finished := make(chan struct{})
	go func() {
		o.done.Wait()
		close(finished)
	}()
	select {
	case <-finished:
	case <-ctx.Done():
	}
	o.cut()
	<-finished
}
