package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"cotejo/accounts"
	"cotejo/ingest"
	"cotejo/testdata/mirror"
)

// demoBalance is what the demonstration's wallet is funded with, in centavos.
const demoBalance = 500_00

type demoCmd struct {
	Addr *string `help:"Dirección y puerto; si el puerto está ocupado se toma el siguiente libre." placeholder:"HOST:PUERTO"`
}

// Run serves invented data in the official format from a mirror inside this
// process, ingests it over HTTP with the code that ingests the real thing, and
// answers on it until it is interrupted.
func (c *demoCmd) Run(a *app) (err error) {
	config := a.config
	where := "carpeta " + config.get("data")
	if config.origins["data"] == originDefault {
		dir, err := os.MkdirTemp("", "cotejo-demo-")
		if err != nil {
			return &exitError{exitIO, err}
		}
		defer os.RemoveAll(dir)
		config.values["data"], where = dir, "carpeta temporal"
	}
	out := a.stdout
	fmt.Fprintf(out, "cotejo demo · espejo local, datos sintéticos, %s\n", where)

	n, err := openNode(config)
	if err != nil {
		return err
	}
	started := time.Now()
	versions, err := ingestMirror(a.ctx, n.dataDir)
	if err != nil {
		return errors.Join(err, n.close())
	}
	fmt.Fprintf(out, "✓ sat_69b: %d versiones descargadas, verificadas e indexadas   %.1f s\n", versions, time.Since(started).Seconds())

	live, test, err := demoAccount(a.ctx, n)
	if err != nil {
		return errors.Join(err, n.close())
	}
	s, err := startService(a.ctx, config, n, slog.New(slog.NewTextHandler(io.Discard, nil)))
	if err != nil {
		return err
	}
	l, err := listenFrom(config.get("addr"))
	if err != nil {
		return errors.Join(exitWith(exitUnavailable, "%w", err), s.close())
	}
	base := "http://" + l.Addr().String()
	if l.Addr().String() != config.get("addr") {
		fmt.Fprintf(out, "! %s está ocupado; se usa %s\n", config.get("addr"), l.Addr())
	}
	fmt.Fprintf(out, `✓ servicio listo                                   %s
  llave viva    %s   (%s MXN de saldo)
  llave prueba  %s
Pruebe:
  curl -s -H 'X-Api-Key: %s' %s/v1/empresa/EFO010101AA1
  curl -s -H 'X-Api-Key: %s' %s/v1/empresa/PRE010101AA1
  curl -s %s/v1/salud
  %s verify all --data %s   # recalcula cada respuesta desde los archivos
Ctrl-C termina.
`, base, live, pesos(demoBalance), test, live, base, test, base, base, os.Args[0], config.get("data"))
	if err := s.serve(a.ctx, l); err != nil {
		return err
	}
	fmt.Fprintln(out, "demo terminada")
	return nil
}

// ingestMirror loads every stage of the bundled mirror, oldest first.
func ingestMirror(ctx context.Context, d *dataDir) (versions int, err error) {
	var stage atomic.Int64
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	server := &http.Server{
		Handler:           mirror.Handler(func() int { return int(stage.Load()) }),
		ReadHeaderTimeout: 5 * time.Second,
	}
	go func() { _ = server.Serve(l) }()
	defer server.Close()
	for n := range mirror.Stages {
		stage.Store(int64(n))
		r, err := ingest.Ingest(ctx, d.sources, ingest.Request{
			Source: "sat_69b", Mirror: "http://" + l.Addr().String(), Now: now(),
		})
		if err != nil {
			return versions, err
		}
		if r.Outcome == ingest.Quarantined {
			return versions, exitWith(exitPartial, "la versión %d del espejo quedó en cuarentena: %v", n, r.Version.Faults)
		}
		if r.Outcome == ingest.Activated {
			versions++
		}
	}
	return versions, nil
}

// demoAccount makes one organization with money and both kinds of keys.
func demoAccount(ctx context.Context, n *node) (live, test string, err error) {
	org, err := n.accounts.CreateOrganization(ctx, "Demostración, S.A. de C.V.")
	if err != nil {
		return "", "", err
	}
	if _, err := n.accounts.Credit(ctx, org.ID, demoBalance, "saldo de la demostración"); err != nil {
		return "", "", err
	}
	if live, _, err = n.accounts.CreateKey(ctx, org.ID, accounts.Live); err != nil {
		return "", "", err
	}
	test, _, err = n.accounts.CreateKey(ctx, org.ID, accounts.Test)
	return live, test, err
}

// listenFrom listens on addr or, when its port is taken, on the next free one
// of the same host.
func listenFrom(addr string) (net.Listener, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	first, err := strconv.Atoi(port)
	if err != nil {
		return nil, fmt.Errorf("el puerto de %s no es un número", addr)
	}
	for p := first; p < first+100; p++ {
		var l net.Listener
		if l, err = net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(p))); err == nil {
			return l, nil
		}
	}
	return nil, err
}
