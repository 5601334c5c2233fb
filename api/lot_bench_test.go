package api

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"
)

// listOf is a JSON list of n RFCs.
func listOf(n int) []byte {
	rfcs := make([]string, n)
	for i := range rfcs {
		rfcs[i] = fmt.Sprintf("%c%c%c%02d%02d%02dAA%d", 'A'+i/26/26/10%26, 'A'+i/26/10%26, 'A'+i/10%26, i/17576/10%100, 1+i%12, 1+i/12%28, i%10)
	}
	return must(json.Marshal(rfcs))
}

// BenchmarkLot answers a list of 20,000 RFCs over the sandbox edition.
func BenchmarkLot(b *testing.B) {
	f := newFixture(b)
	body := listOf(20_000)
	for _, detail := range []string{"resumen", "completo"} {
		b.Run(detail, func(b *testing.B) {
			for b.Loop() {
				conn := must(f.listener.Dial())
				go fmt.Fprintf(conn, "POST /v1/empresa/lote?detalle=%s HTTP/1.1\r\nHost: x\r\nX-Api-Key: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
					detail, f.keys["test"], len(body), body)
				resp := must(http.ReadResponse(bufio.NewReader(conn), nil))
				n := must(io.Copy(io.Discard, resp.Body))
				if resp.StatusCode != 200 || n < int64(len(body)) {
					b.Fatalf("%d, %d bytes", resp.StatusCode, n)
				}
				conn.Close()
			}
		})
	}
}
