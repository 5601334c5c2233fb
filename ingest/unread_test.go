package ingest

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"cotejo/ingest/tabular"
	"cotejo/snapshots"
	"cotejo/testdata/mirror"
)

// TestUnreadRecords: what was left out of the version in service is told for as long
// as it serves, and a file of which too much was left out waits for a person.
func TestUnreadRecords(t *testing.T) {
	for _, source := range []string{"compranet_2020", "compranet_2025"} {
		t.Run(source, func(t *testing.T) {
			tr := newTrial(t, source)
			head, rest, _ := strings.Cut(string(tr.good), "\r\n")
			first, _, _ := strings.Cut(rest, "\r\n")
			shifted := strings.Replace(first, "APF,", "APF,x,", 1) + "\r\n"
			lacks := func(n int) string { return head + "\r\n" + strings.Repeat(shifted, n) + rest }
			ingest := func(content string, want Outcome) Result {
				t.Helper()
				r, err := tr.ingest(Request{Name: "contratos.csv", Corte: mirror.Corte(mirror.Stages - 1), Content: func() (io.ReadCloser, error) {
					return io.NopCloser(bytes.NewReader([]byte(content))), nil
				}})
				if err != nil || r.Outcome != want {
					t.Fatalf("%s %v, %v; want %s", r.Outcome, r.Faults, err, want)
				}
				return r
			}
			noticed := func(says string) {
				t.Helper()
				a, ok, err := tr.c.LastAttempt(source)
				if err != nil || !ok {
					t.Fatal(ok, err)
				}
				var got []string
				for _, n := range a.Notices {
					got = append(got, n.Code+" "+n.Message)
				}
				if all := strings.Join(got, "\n"); (says == "") != (all == "") || !strings.Contains(all, says) || len(got) > 1 {
					t.Errorf("notices %q, want %q", got, says)
				}
			}
			noticed("")
			ingest(lacks(1), Activated)
			noticed("REGISTROS_OMITIDOS de la versión 2 en servicio, 1 de sus ")
			ingest(lacks(1), Unchanged)
			noticed("de la versión 2 en servicio, 1 de sus ")
			ingest(lacks(unreadFew), Activated)
			noticed("de la versión 3 en servicio, 5 de sus ")

			held := ingest(lacks(unreadFew+1), Quarantined)
			if len(held.Faults) != 1 || held.Faults[0].Code != tabular.Unread || !strings.HasPrefix(held.Faults[0].Message, "6 de sus ") {
				t.Errorf("faults %v", held.Faults)
			}
			noticed("de la versión 3 en servicio, 5 de sus ")
			r, err := Accept(t.Context(), tr.c, held.Version.ID, "Ana", "comparado", tr.now)
			if err != nil || r.Outcome != Activated || r.Version.Counts[tabular.UnreadRecords] != 6 || r.Version.AcceptedFrom != held.Version.ID {
				t.Fatalf("%+v, %v", r, err)
			}
			noticed("de la versión 5 en servicio, 6 de sus ")
			if a, _, _ := tr.c.LastAttempt(source); a.Outcome != snapshots.OutcomeActivated {
				t.Errorf("%+v", a)
			}
		})
	}
}

func TestUnreadShare(t *testing.T) {
	f := func(rows, bad int, want string) {
		t.Helper()
		faults := pastGates(&tabular.Summary{Rows: rows, Counts: map[string]int{tabular.UnreadRecords: bad}})
		if got := strings.Join(codesOf(faults), " "); got != want {
			t.Errorf("%d of %d: %q", bad, rows+bad, got)
		}
	}
	f(10, 5, "")
	f(10, 6, tabular.Unread)
	f(99_900, 100, "")
	f(99_899, 101, tabular.Unread)
}
