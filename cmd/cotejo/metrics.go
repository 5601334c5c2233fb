package main

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"time"

	"github.com/VictoriaMetrics/metrics"
)

func init() {
	metrics.NewGauge(fmt.Sprintf("cotejo_build_info{version=%q,engine=%q,go=%q}", version, engineVersion, runtime.Version()),
		func() float64 { return 1 })
}

// metricsServer answers GET /metrics and nothing else, on a listener of its own:
// what it says is for whoever runs the service, never for its clients.
type metricsServer struct {
	http http.Server
	addr string
	done chan struct{}
}

// serveMetrics listens on addr; "" means not at all. That it cannot is logged and
// no reason not to serve: it returns nil then, which may be closed.
func serveMetrics(addr string, log *slog.Logger) *metricsServer {
	if addr == "" {
		return nil
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		log.Error("sin métricas: no se puede escuchar en metrics_addr; el servicio sigue. Cambie metrics_addr, o déjelo vacío", "addr", addr, "error", err.Error())
		return nil
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		w.Header().Set("Cache-Control", "no-store")
		metrics.WritePrometheus(w, true)
	})
	m := &metricsServer{done: make(chan struct{}), addr: l.Addr().String()}
	m.http = http.Server{
		Handler: mux, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn),
		ReadTimeout: 5 * time.Second, WriteTimeout: 30 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 8 << 10,
	}
	go func() {
		defer close(m.done)
		if err := m.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			log.Error("métricas", "error", err.Error())
		}
	}()
	log.Info("métricas", "addr", "http://"+m.addr+"/metrics")
	return m
}

// close cuts the connections: a scrape is asked for again.
func (m *metricsServer) close() error {
	if m == nil {
		return nil
	}
	err := m.http.Close()
	<-m.done
	return err
}
