package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"cotejo/accounts"
	"cotejo/civil"
	"cotejo/ingest"
	"cotejo/query"
	"cotejo/snapshots"
	"cotejo/testdata/mirror"
)

// demoBalance is what the demonstration's wallet is funded with, in centavos.
const demoBalance = 500_00

// demoSource is what the demonstration ingests, with the day that the mirror's file
// is of at a stage.
type demoSource struct {
	id  string
	day func(stage int) civil.Date
}

var demoSources = append([]demoSource{
	{"sat_69b", mirror.Corte},
	{"sat_69b_bis", mirror.CorteBis},
	// The catalogues have one version: that of the last stage.
	{"banxico_fix", newest},
	{"banxico_spei", newest},
	{"ift_numeracion", newest},
	// Two years of contracts: one of each layout.
	{"compranet_2021", newest},
	{"compranet_2025", newest},
	// Of sanctioned suppliers, the table without RFC and the directory's answer.
	{"sfp_proveedores_sancionados", newest},
	{"sabg_proveedores_sancionados", newest},
}, demoArt69()...)

// art69Prefix is what the ids of the lists under article 69 have in common.
const art69Prefix = "sat_art69_"

// demoArt69 are the lists under article 69 that the mirror links. One of them
// changes between the stages.
func demoArt69() (sources []demoSource) {
	for _, l := range query.Art69Lists {
		switch {
		case l.WhenLinked:
		case l.Code == "FIRMES":
			sources = append(sources, demoSource{l.Schema.Source, mirror.DayFirmes})
		default:
			sources = append(sources, demoSource{l.Schema.Source, newest})
		}
	}
	return sources
}

// newest is a day of the last stage alone.
func newest(stage int) civil.Date {
	if stage < mirror.Stages-1 {
		return civil.Date{}
	}
	return civil.Date{Year: 9999, Month: 12, Day: 31}
}

type demoCmd struct {
	Addr *string `help:"Dirección y puerto; si el puerto está ocupado se toma el siguiente libre." placeholder:"HOST:PUERTO"`
}

// Run serves invented data in the official format from a mirror inside this
// process, ingests it over HTTP with the code that ingests the real thing, and
// answers on it until it is interrupted. An interruption is its normal end,
// whenever it comes.
func (c *demoCmd) Run(a *app) error {
	// Only a directory that was named for it: the configured one may hold the
	// data of a service.
	dir, where, temporary := a.config.get("data"), "carpeta "+a.config.get("data"), false
	if a.config.origins["data"] != originFlag {
		temp, err := os.MkdirTemp("", "cotejo-demo-")
		if err != nil {
			return &exitError{exitIO, err}
		}
		defer os.RemoveAll(temp)
		dir, where, temporary = temp, "carpeta temporal", true
	}
	if err := claimForDemo(dir, temporary); err != nil {
		return err
	}
	config := configuration{values: map[string]string{"data": dir}}
	for _, key := range []string{"addr", "limite_llave", "limite_direccion"} {
		config.values[key] = a.config.get(key)
	}
	fmt.Fprintf(a.stdout, "cotejo demo · espejo local, datos sintéticos, %s\n", where)
	if err := runDemo(a, config); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	fmt.Fprintln(a.stdout, "demo terminada")
	return nil
}

// claimForDemo marks a directory as a demonstration's, unless it holds anything
// that no demonstration made.
func claimForDemo(dir string, temporary bool) error {
	marker := filepath.Join(dir, fileDemo)
	if _, err := os.Stat(marker); err == nil {
		return nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return &exitError{exitIO, err}
	}
	if len(entries) > 0 && !temporary {
		return exitWith(exitUsage, "%s tiene datos que no son de una demostración: use --data con una carpeta nueva, o ninguna", dir)
	}
	if err := makeDurably(dir); err != nil {
		return &exitError{exitIO, err}
	}
	return createFile(marker, []byte("datos sintéticos de «cotejo demo»\n"))
}

func runDemo(a *app, config configuration) error {
	out := a.stdout
	n, err := openNode(a.ctx, config, mayBeCreated)
	if err != nil {
		return err
	}
	versions, err := ingestMirror(a.ctx, n.dataDir)
	if err != nil {
		return errors.Join(err, n.close())
	}
	lists, listVersions := 0, 0
	for i, source := range demoSources {
		if strings.HasPrefix(source.id, art69Prefix) {
			lists, listVersions = lists+1, listVersions+versions[i]
			continue
		}
		noun := "versiones descargadas, verificadas e indexadas"
		if versions[i] == 1 {
			noun = "versión descargada, verificada e indexada"
		}
		fmt.Fprintf(out, "✓ %s: %d %s\n", source.id, versions[i], noun)
	}
	fmt.Fprintf(out, "✓ %s…: %d versiones de %d listas\n", art69Prefix, listVersions, lists)

	live, test, err := demoAccount(a.ctx, n)
	if err != nil {
		return errors.Join(err, n.close())
	}
	s, err := startService(a.ctx, n, slog.New(slog.NewTextHandler(a.stderr, nil)))
	if err != nil {
		return err
	}
	l, moved, err := listenFrom(config.get("addr"))
	if err != nil {
		return errors.Join(exitWith(exitUnavailable, "%w", err), s.close())
	}
	if moved {
		fmt.Fprintf(out, "! %s está ocupado; se usa %s\n", config.get("addr"), l.Addr())
	}
	base := "http://" + reachable(l.Addr())
	fmt.Fprintf(out, `✓ servicio listo                                   %s
  llave viva    %s   (%s MXN de saldo)
  llave prueba  %s
Pruebe:
  curl -s -H 'X-Api-Key: %s' %s/v1/empresa/EFO010101AA1
  curl -s -H 'X-Api-Key: %s' %s/v1/empresa/PRE010101AA1
  curl -s -H 'X-Api-Key: %s' '%s/v1/empresa/PRO010101AA1/contratos?limite=3'
  curl -s -H 'X-Api-Key: %s' '%s/v1/economia/tipo-cambio?fecha=%s&monto=100'
  curl -s -H 'X-Api-Key: %s' %s/v1/catalogo/telefono/5512345678
  curl -s %s/v1/salud
  %s verify all --data %s   # recalcula cada respuesta desde los archivos
Ctrl-C termina.
`, base, live, pesos(demoBalance), test, live, base, test, base, live, base, live, base, mirror.LastFIX(mirror.Stages-1), live, base, base, os.Args[0], config.get("data"))
	return s.serve(a.ctx, l)
}

// ingestMirror loads the stages of the bundled mirror, oldest first, and returns
// how many versions there are now of each of demoSources. A directory that was
// used before goes on from the versions that it serves.
func ingestMirror(ctx context.Context, d *dataDir) (versions []int, err error) {
	serving, err := d.sources.LatestEdition()
	if err != nil && !errors.Is(err, snapshots.ErrNoEdition) {
		return nil, err
	}
	versions = make([]int, len(demoSources))
	days := make([]civil.Date, len(demoSources))
	for i, source := range demoSources {
		for _, e := range serving.Sources {
			if e.Source == source.id {
				days[i], versions[i] = e.OrderDate, len(e.Chain)
			}
		}
	}
	var stage atomic.Int64
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	server := &http.Server{
		Handler:           mirror.Handler(func() int { return int(stage.Load()) }),
		ReadHeaderTimeout: 5 * time.Second,
	}
	go func() { _ = server.Serve(l) }()
	defer server.Close()
	for n := range mirror.Stages {
		stage.Store(int64(n))
		for i, source := range demoSources {
			day := source.day(n)
			if !days[i].Before(day) {
				continue
			}
			r, err := ingest.Ingest(ctx, d.sources, ingest.Request{
				Source: source.id, Mirror: "http://" + l.Addr().String(), Now: now(),
			})
			if err != nil {
				return nil, err
			}
			if r.Outcome == ingest.Quarantined {
				return nil, exitWith(exitPartial, "%s: la versión %d del espejo quedó en cuarentena: %v", source.id, n, r.Faults)
			}
			if r.Outcome == ingest.Activated {
				versions[i]++
			}
			days[i] = day
		}
	}
	return versions, nil
}

// demoAccount makes an account of one organization with money and both kinds of keys: anew
// each time, because a key can be shown only once.
func demoAccount(ctx context.Context, n *node) (live, test string, err error) {
	_, orgs, err := n.accounts.CreateAccount(ctx, accounts.AccountRequest{Name: "Demostración, S.A. de C.V."})
	if err != nil {
		return "", "", err
	}
	org := orgs[0].ID
	if _, err := n.accounts.Credit(ctx, org, demoBalance, "saldo de la demostración"); err != nil {
		return "", "", err
	}
	if live, _, err = n.accounts.CreateKey(ctx, accounts.KeyRequest{Org: org, Mode: accounts.Live}); err != nil {
		return "", "", err
	}
	test, _, err = n.accounts.CreateKey(ctx, accounts.KeyRequest{Org: org, Mode: accounts.Test})
	return live, test, err
}

// listenFrom listens on addr or, when its port is taken, on the next free one
// of the same host; moved tells which.
func listenFrom(addr string) (l net.Listener, moved bool, err error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, false, err
	}
	first, err := strconv.Atoi(port)
	if err != nil || first < 0 || first > maxPort {
		return nil, false, fmt.Errorf("el puerto de %s no es un número de 0 a %d", addr, maxPort)
	}
	for p := first; p <= min(first+100, maxPort); p++ {
		l, err = net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(p)))
		if !errors.Is(err, syscall.EADDRINUSE) {
			return l, p != first, err
		}
	}
	return nil, false, err
}

const maxPort = 1<<16 - 1

// reachable is the address at which a browser on this machine finds a listener:
// one that listens everywhere is asked on the loopback address.
func reachable(listening net.Addr) string {
	host, port, err := net.SplitHostPort(listening.String())
	if err != nil {
		return listening.String()
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
}
