package api

import (
	"slices"
	"strconv"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"cotejo/operation"
)

// inflight counts the requests that are being answered, those that wait for a
// slot included.
var inflight = func() (g [operation.Classes]*metrics.Gauge) {
	for c := range operation.Classes {
		g[c] = metrics.NewGauge(`cotejo_http_inflight{class="`+c.String()+`"}`, nil)
	}
	return g
}()

// routeMetrics are what is counted of one route. Names are put together once, so
// that a request formats none.
type routeMetrics struct {
	route    string // template, "-" for what is no request of an operation
	duration *metrics.Histogram
	statuses []int // ascending
	answers  []*metrics.Counter
}

// otherRoutes is the label of requests without a route of their own: paths that
// lead nowhere, what is no HTTP, and HEAD.
const otherRoutes = "-"

// newRouteMetrics prepares a route for the statuses that it is known to answer
// with. Operations of one path count together.
func newRouteMetrics(route string, statuses ...int) *routeMetrics {
	m := &routeMetrics{
		route: route, statuses: statuses,
		duration: metrics.GetOrCreateHistogram(`cotejo_http_duration_seconds{route="` + route + `"}`),
	}
	slices.Sort(m.statuses)
	for _, status := range m.statuses {
		m.answers = append(m.answers, m.counter(status))
	}
	return m
}

func (m *routeMetrics) counter(status int) *metrics.Counter {
	return metrics.GetOrCreateCounter(`cotejo_http_requests_total{route="` + m.route + `",status="` + strconv.Itoa(status) + `"}`)
}

// answered counts one answer.
func (m *routeMetrics) answered(status int, took time.Duration) {
	if i, known := slices.BinarySearch(m.statuses, status); known {
		m.answers[i].Inc()
	} else {
		m.counter(status).Inc()
	}
	m.duration.Update(took.Seconds())
}
