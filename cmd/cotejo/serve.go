package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync/atomic"
	"time"

	"cotejo/accesslog"
	"cotejo/admin"
	"cotejo/api"
	"cotejo/catalog"
	"cotejo/machine"
	"cotejo/mail"
	"cotejo/operation"
	"cotejo/products/catalogs"
	"cotejo/products/company"
	"cotejo/products/evidence"
	"cotejo/products/fiscal"
	"cotejo/products/identifiers"
	"cotejo/products/organization"
	"cotejo/products/platform"
	"cotejo/products/registration"
	"cotejo/products/wallet"
	"cotejo/query"
	"cotejo/snapshots"
)

const (
	// engineVersion is what every answer carries (spec: Versioning).
	engineVersion = operation.EngineVersion
	// pollEvery is how long an edition that another process published waits.
	pollEvery = time.Second
	// measureEvery is after how many of them what is measured of sources is set.
	measureEvery = 10
	// saveUsesEvery is how much of when keys were used is lost with a killed process.
	saveUsesEvery = time.Minute
	// shutdownGrace bounds how long accepted requests may take to finish.
	shutdownGrace = 25 * time.Second
)

// service is a node that answers.
type service struct {
	*node
	live, sandboxLive *snapshots.Live
	server            *api.Server
	access            *accesslog.Log
	admin             *admin.Server
	metrics           *metricsServer
	disk              *machine.Disk
	outbox            *mail.Outbox // nil: no mail server is configured
	log               *slog.Logger
	stopPolling       context.CancelFunc
	polled            chan struct{}
	stopJobs          context.CancelFunc // ends runs too; nil when nobody follows the schedule
	jobsEnded         chan struct{}
	usesKept          chan struct{} // closed when the uses of keys are saved for the last time
	stopLots          context.CancelFunc
	lotsEnded         chan struct{} // nil before the work on lots began

	wait      time.Duration // shutdown_wait
	closing   atomic.Bool   // asked to end: not ready any more
	lastAlarm string        // of the clock; the polling goroutine's
}

// startService assembles everything over an open node and starts to follow
// editions and administration. It does not listen for requests yet. It owns the
// node from here on.
func startService(ctx context.Context, n *node, log *slog.Logger) (_ *service, err error) {
	s := &service{node: n, log: log, polled: make(chan struct{}), stopPolling: func() {}}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	if s.wait, err = n.config.duration("shutdown_wait"); err != nil {
		return nil, err
	}
	if s.disk, err = newDisk(n.config, n.dataDir); err != nil {
		return nil, err
	}
	s.look()
	if err := loadSandbox(ctx, n.dataDir.sandbox); ctx.Err() != nil {
		return nil, context.Cause(ctx)
	} else if err != nil {
		log.Error("las llaves de prueba se responden desde la edición de pruebas anterior, o sin fuentes", "error", err)
	}
	if s.live, err = snapshots.NewLive(n.sources, prepareEdition); err != nil {
		return nil, err
	}
	if s.sandboxLive, err = snapshots.NewLive(n.sandbox, prepareEdition); err != nil {
		return nil, err
	}
	for _, live := range []*snapshots.Live{s.live, s.sandboxLive} {
		if err := live.Fault(); err != nil {
			log.Error("la edición más nueva no se puede abrir; se sirve una anterior o ninguna, y /v1/salud lo dice", "error", err)
		}
	}
	trusted, err := n.config.trustedProxies()
	if err != nil {
		return nil, err
	}
	throttle, err := n.config.throttle()
	if err != nil {
		return nil, err
	}
	keep, err := n.config.keepAccesses()
	if err != nil {
		return nil, err
	}
	if err := n.accounts.Warm(ctx); err != nil {
		return nil, err
	}
	s.access = accesslog.Open(accesslog.Options{Dir: n.room(dirAccesses), Keep: keep, Log: log, Full: s.disk.Full})
	pipeline := &operation.Pipeline{
		Live: s.live, Sandbox: s.sandboxLive, Ledger: n.ledger, Accounts: n.accounts, Now: now,
		Full: s.disk.Full, InputKey: n.inputKey, Throttle: throttle,
	}
	var send registration.Send
	if sender, err := n.config.sender(nil); err != nil {
		return nil, err
	} else if sender != nil {
		s.outbox = mail.NewOutbox(sender.Send, log)
		send = s.outbox.Add
	}
	about := platform.Config{
		Catalogue: n.sources, Live: s.live, Pipeline: pipeline, Now: now, Jobs: n.jobStates,
		Conditions: s.conditions(), Notices: s.notices, Lacks: n.config.lacks, Access: s.access, AccessDays: keep.Days,
	}
	table, err := n.operations(about, evidence.Config{Catalogue: n.sources, Sandbox: n.sandbox, Pipeline: pipeline, Now: now}, send)
	if err != nil {
		return nil, err
	}
	if s.server, err = api.New(api.Config{Table: table, Pipeline: pipeline, Log: log, Access: s.access, Trusted: trusted}); err != nil {
		return nil, err
	}
	if s.admin, err = admin.Listen(n.path, n.commands(), exitCode, log); err != nil {
		return nil, err
	}
	s.metrics = serveMetrics(n.config.get("metrics_addr"), log)
	working, stopLots := context.WithCancel(context.Background())
	s.stopLots, s.lotsEnded = stopLots, make(chan struct{})
	go func() {
		defer close(s.lotsEnded)
		pipeline.RunLots(working, table, n.taken, log)
	}()
	polling, stop := context.WithCancel(context.Background())
	s.stopPolling = stop
	go s.follow(polling, about)
	s.usesKept = make(chan struct{})
	go s.keepUses(polling)
	return s, nil
}

// prepareEdition is a snapshots.Prepare: what answers need of an edition beside its
// rows.
func prepareEdition(e, before *snapshots.Edition) (any, error) {
	if err := query.Warm(e, before); err != nil {
		return nil, err
	}
	return catalog.Prepare(e, before)
}

// keepUses saves when keys were last used, until ctx ends and then once more.
func (s *service) keepUses(ctx context.Context) {
	defer close(s.usesKept)
	tick := time.NewTicker(saveUsesEvery)
	defer tick.Stop()
	for ended := false; !ended; {
		select {
		case <-ctx.Done():
			ended = true
		case <-tick.C:
		}
		if err := s.accounts.SaveUses(context.Background()); err != nil && !s.waits() { // they wait too
			s.log.Warn("no se guardó cuándo se usaron las llaves; se reintenta", "error", err)
		}
	}
}

// operations are all that the service can do.
func (n *node) operations(about platform.Config, evident evidence.Config, send registration.Send) (operation.Table, error) {
	set := catalog.Embedded()
	return operation.NewTable(company.Operations(evident.Pipeline), evidence.Operations(evident), fiscal.Operations(), identifiers.Operations(), catalogs.Operations(),
		organization.Operations(organization.Config{Accounts: n.accounts, Set: set, Now: now}), wallet.Operations(n.ledger, now), platform.Operations(about),
		registration.Operations(registration.Config{Accounts: n.accounts, Catalogs: set, Now: now, Send: send}))
}

// startJobs follows the schedule until the service closes.
func (s *service) startJobs() {
	ctx, stop := context.WithCancel(context.Background())
	s.stopJobs, s.jobsEnded = stop, make(chan struct{})
	go func() {
		defer close(s.jobsEnded)
		s.jobs.Follow(ctx, s.log)
	}()
}

// follow swaps in what this or another process published, keeps what is measured
// of it current, and an eye on the machine.
func (s *service) follow(ctx context.Context, about platform.Config) {
	defer close(s.polled)
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	lastFault := ""
	for n := 0; ; n++ {
		if n%measureEvery == 0 {
			platform.Measure(about)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		s.look()
		swapped, err := s.live.Refresh()
		switch {
		case err != nil && err.Error() != lastFault:
			lastFault = err.Error()
			s.log.Error("la edición más nueva no se puede abrir; se sigue sirviendo la anterior", "error", err)
		case swapped:
			lastFault = ""
			ed := s.live.Acquire()
			s.log.Info("edición activa", "edicion", ed.Manifest().Number, "edicion_sha256", ed.Manifest().SHA256)
			ed.Release()
		}
	}
}

// serve answers on l until ctx ends, or until this node must not go on. From then on the service is not ready; it
// goes on for shutdown_wait, so that whoever spreads the requests learns of it,
// then finishes what was accepted, for as long as shutdownGrace. It closes l and
// the service in any case.
func (s *service) serve(ctx context.Context, l net.Listener) error {
	if ctx.Err() != nil { // asked to end while it started
		return errors.Join(l.Close(), s.close())
	}
	served, server := make(chan error, 1), s.server
	go func() { served <- server.Serve(l) }()
	var failed chan error
	if s.turn != nil {
		failed = s.turn.failed
	}
	var ended error
	select {
	case err := <-served:
		return errors.Join(err, closed(l.Close()), s.close())
	case ended = <-failed:
		s.log.Error("cuentas: este nodo no debe seguir", "error", ended.Error())
	case <-ctx.Done():
	}
	s.closing.Store(true)
	s.log.Info("cerrando: /readyz ya no está listo; después se terminan las peticiones aceptadas", "espera", s.wait.String())
	select {
	case err := <-served:
		return errors.Join(err, closed(l.Close()), s.close())
	case <-time.After(s.wait):
	}
	grace, cancel := context.WithTimeout(context.Background(), shutdownGrace)
	defer cancel()
	err := errors.Join(ended, s.shutdown(grace))
	// A server that had not begun to serve does not know the listener yet.
	err = errors.Join(err, closed(l.Close()))
	select {
	case failed := <-served:
		err = errors.Join(err, closed(failed))
	case <-grace.Done():
		err = errors.Join(err, errors.New("el servidor HTTP no terminó a tiempo"))
	}
	return errors.Join(err, s.close())
}

// closed passes over the error of a listener that was closed already.
func closed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// shutdown ends the HTTP server, once.
func (s *service) shutdown(ctx context.Context) error {
	server := s.server
	s.server = nil
	if server == nil {
		return nil
	}
	return server.Shutdown(ctx)
}

// close stops everything that was started, in the reverse order.
func (s *service) close() error {
	grace, cancel := context.WithTimeout(context.Background(), shutdownGrace)
	defer cancel()
	if s.stopJobs != nil {
		s.stopJobs() // they end while requests do
	}
	errs := []error{s.shutdown(grace)}
	if s.lotsEnded != nil {
		s.stopLots() // clients that waited for the end of one have it now, or are gone
		<-s.lotsEnded
	}
	if s.admin != nil {
		errs = append(errs, s.admin.Close())
		s.stopPolling()
		<-s.polled
		<-s.usesKept
		errs = append(errs, s.metrics.close())
	}
	if s.stopJobs != nil {
		select {
		case <-s.jobsEnded:
		case <-grace.Done():
			errs = append(errs, errors.New("una tarea programada no terminó a tiempo"))
		}
	}
	s.access.Close()
	if s.outbox != nil {
		s.outbox.Close(grace)
	}
	if s.sandboxLive != nil {
		errs = append(errs, s.sandboxLive.Close())
	}
	if s.live != nil {
		errs = append(errs, s.live.Close())
	}
	return errors.Join(append(errs, s.node.close())...)
}

type serveCmd struct {
	Addr *string `help:"Dirección y puerto." placeholder:"HOST:PUERTO"`
	Jobs *string `help:"Tareas programadas: on, off." placeholder:"on|off"`
}

func (c *serveCmd) Run(a *app) error {
	log := newLogger(a.stderr)
	slog.SetDefault(log) // of the store and the ledger
	n, err := openWaiting(a.ctx, a.config, mayBeCreated)
	if err != nil {
		return err
	}
	if err := exposed(n.path); err != nil {
		return errors.Join(&exitError{exitConfig, err}, n.close())
	}
	s, err := startService(a.ctx, n, log)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", a.config.get("addr"))
	if err != nil {
		return errors.Join(exitWith(exitUnavailable, "no se puede escuchar en %s: %w", a.config.get("addr"), err), s.close())
	}
	log.Info("servicio listo", "addr", "http://"+l.Addr().String(), "datos", n.path)
	if n.turn != nil {
		log.Info("cuentas en una base de datos", "base", n.turn.db.Where(), "nodo", n.turn.node.Name, "tiene_el_turno", n.turn.held())
	}
	if a.config.get("jobs") == "on" {
		s.startJobs()
	}
	ed := s.live.Acquire()
	empty := len(ed.Manifest().Sources) == 0
	ed.Release()
	switch {
	case empty && s.stopJobs != nil:
		fmt.Fprintf(a.stderr, "Aún no hay fuentes cargadas: se descargan en cosa de un minuto. Vea cómo van: cotejo jobs list --data %s\n", n.path)
	case empty:
		fmt.Fprintf(a.stderr, "Aún no hay fuentes cargadas. Cargue la primera: cotejo ingest sat_69b --data %s\n", n.path)
	}
	return s.serve(a.ctx, l)
}
