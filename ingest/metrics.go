package ingest

import (
	"fmt"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"cotejo/snapshots"
)

// What a process tells of the sources it loads. Sources are ids of the registry,
// outcomes those of snapshots.Attempt; an ingestion that its caller interrupted,
// that found the catalogue locked, or of bytes inside this program counts nowhere.

// attempts counts ingestions by how they ended.
func attempts(source, outcome string) *metrics.Counter {
	return metrics.GetOrCreateCounter(fmt.Sprintf(`cotejo_source_attempts_total{source=%q,outcome=%q}`, source, outcome))
}

// ingestSeconds is how long ingestions take, downloads and waits included.
func ingestSeconds(source string) *metrics.Histogram {
	return metrics.GetOrCreateHistogram(fmt.Sprintf(`cotejo_ingest_seconds{source=%q}`, source))
}

// retries counts the waits for another attempt at a download.
func retries(source string) *metrics.Counter {
	return metrics.GetOrCreateCounter(fmt.Sprintf(`cotejo_download_retries_total{source=%q}`, source))
}

// measure counts an ingestion that has ended.
func (in *ingestion) measure(started time.Time, r Result, failed error) {
	source := in.source.Schema.Source
	ingestSeconds(source).UpdateDuration(started)
	if failed != nil {
		attempts(source, snapshots.OutcomeFailed).Inc()
		return
	}
	attempts(source, string(r.Outcome)).Inc()
}
