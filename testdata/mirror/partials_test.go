package mirror

import (
	"bytes"
	"encoding/csv"
	"flag"
	"fmt"
	"os"
	"path"
	"strings"
	"testing"

	"golang.org/x/text/encoding/charmap"
)

var update = flag.Bool("update", false, "write the partial lists anew from the complete ones")

// forgotten is the one difference between the lists: at stage 2 the new
// presumption is in the complete list and not yet in Presuntos.csv.
const (
	forgottenStage = 2
	forgottenRFC   = "PRE010101AA1"
)

// TestPartials holds each stored list of one situation to the complete list of its
// stage: the same records byte by byte, numbered anew.
func TestPartials(t *testing.T) {
	f := func(name, situation string, want ...int) {
		t.Helper()
		for stage := range Stages {
			content, rows := partialOf(t, stage, name, situation)
			if rows != want[stage] {
				t.Errorf("stage %d: %s has %d rows, want %d", stage, path.Base(name), rows, want[stage])
			}
			if *update {
				if err := os.WriteFile(fmt.Sprintf("data/%d/%s", stage, path.Base(name)), content, 0o644); err != nil { //nolint:gosec // a public file
					t.Fatal(err)
				}
			} else if stored, ok := File(stage, name); !ok || !bytes.Equal(stored, content) {
				t.Errorf("stage %d: %s is not what the complete list gives; run go test -update", stage, path.Base(name))
			}
		}
	}
	f(Definitivos, "Definitivo", 28, 28, 29, 30)
	f(Presuntos, "Presunto", 10, 9, 9, 8) // 10 in the complete list of stage 2
	f(Desvirtuados, "Desvirtuado", 0, 1, 2, 2)
	f(SentenciasFavorables, "Sentencia Favorable", 5, 6, 5, 5)
}

// partialOf makes a list of one situation from the complete list of a stage. The
// presumptions are padded with empty columns and end in filler, as the real ones.
func partialOf(t *testing.T, stage int, name, situation string) (content []byte, rows int) {
	t.Helper()
	padding, filler := "", 0
	if name == Presuntos {
		padding, filler = ",,,,", 5
		if stage == Stages-1 {
			padding = ",,,"
		}
	}
	var out bytes.Buffer
	for i, record := range split(raw(t, stage)) {
		decoded, err := charmap.Windows1252.NewDecoder().String(string(record))
		if err != nil {
			t.Fatal(err)
		}
		cells, err := csv.NewReader(strings.NewReader(decoded)).Read()
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := bytes.Cut(record, []byte(","))
		switch {
		case i == 2:
			record = append([]byte("No.,"), rest...)
		case i < 2:
		case cells[3] != situation, stage == forgottenStage && cells[1] == forgottenRFC:
			continue
		default:
			rows++
			record = append(fmt.Appendf(nil, "%d,", rows), rest...)
		}
		out.Write(record)
		out.WriteString(padding + "\r\n")
	}
	for range filler {
		out.WriteString(strings.Repeat(",", 19) + padding + "\r\n")
	}
	return out.Bytes(), rows
}

// split returns the records of a file without the line ends behind them.
func split(content []byte) (records [][]byte) {
	quoted, start := false, 0
	for i, c := range content {
		switch {
		case c == '"':
			quoted = !quoted
		case c == '\n' && !quoted:
			records = append(records, bytes.TrimSuffix(content[start:i], []byte("\r")))
			start = i + 1
		}
	}
	return records
}
