package export_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"cotejo/canon"
	"cotejo/export"
	"cotejo/ledger"
	"cotejo/snapshots"
	"cotejo/store"
	"cotejo/store/storetest"
)

var start = time.Date(2026, 11, 20, 12, 0, 0, 123_456_789, time.UTC)

// seeded gives the same bytes every time.
type seeded byte

func (s seeded) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(s) + byte(i)
	}
	return len(p), nil
}

// book is a ledger in memory with what an export needs around it.
type book struct {
	t     *testing.T
	store store.Store
	*ledger.Ledger
	data      string // stands for the data directory
	catalogue *snapshots.Catalogue
}

func newBook(t *testing.T) *book {
	t.Helper()
	s, err := store.OpenPebble("cuentas", store.PebbleOptions{FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	return bookOn(t, s)
}

// onEachEngine runs a test on a ledger in memory and, where there is a server, on
// PostgreSQL.
func onEachEngine(t *testing.T, test func(*testing.T, func(*testing.T) *book)) {
	t.Run("pebble", func(t *testing.T) { test(t, newBook) })
	t.Run("postgres", func(t *testing.T) {
		storetest.PostgresURL(t) // or skip
		test(t, func(t *testing.T) *book {
			s, err := store.OpenPostgres(t.Context(), storetest.PostgresURL(t), store.PostgresOptions{})
			if err != nil {
				t.Fatal(err)
			}
			return bookOn(t, s)
		})
	})
}

func bookOn(t *testing.T, s store.Store) *book {
	t.Helper()
	var err error
	b := &book{t: t, store: s, data: t.TempDir()}
	if b.catalogue, err = snapshots.OpenCatalogue(filepath.Join(b.data, "fuentes")); err != nil {
		t.Fatal(err)
	}
	b.open()
	t.Cleanup(func() {
		if err := errors.Join(b.Close(), s.Close()); err != nil {
			t.Error(err)
		}
	})
	return b
}

func (b *book) anchor() string { return filepath.Join(b.data, "ancla.json") }

func (b *book) open() {
	b.t.Helper()
	l, err := ledger.Open(b.store, ledger.Options{Random: seeded(7), Anchor: b.anchor()})
	if err != nil {
		b.t.Fatal(err)
	}
	b.Ledger = l
}

// reopen writes what is gathered in memory: counts and the anchor.
func (b *book) reopen() {
	b.t.Helper()
	if err := b.Close(); err != nil {
		b.t.Fatal(err)
	}
	b.open()
}

func (b *book) do(account ledger.AccountID, c ledger.Command) ledger.Result {
	b.t.Helper()
	r, err := b.Do(b.t.Context(), account, c)
	if err != nil {
		b.t.Fatal(err)
	}
	return r
}

// emptyEdition is edicion_sha256 of the edition without sources, which every
// catalogue has.
var emptyEdition = sha256.Sum256([]byte("[]"))

func (b *book) charge(account ledger.AccountID, org ledger.OrgID, now time.Time, price int64, sandbox bool, rfc string) {
	b.t.Helper()
	id, err := b.NextID(b.t.Context(), "COM", now)
	if err != nil {
		b.t.Fatal(err)
	}
	registro, sum, acta := texts(id, rfc)
	b.do(account, ledger.Charge{
		Now: now, Price: price, Sum: sum,
		Record: ledger.Record{
			ID: id, Org: org, Sandbox: sandbox, Service: "COMPANY", Code: "COMPANY_OK", Operation: "verificarEmpresa",
			Edition: emptyEdition, Registro: registro, Acta: acta,
		},
	})
}

// texts are those of an answer.
func texts(id ledger.VerificationID, rfc string) (registro []byte, sum [sha256.Size]byte, acta []byte) {
	registro = fmt.Appendf(nil, `{"edicion_sha256":"%x","entrada":{"rfc":%q},"fecha":"2026-11-20","motor":"COMPANY/2","observado":null,"resultado":{"nombre":"Ñandú «%s»"}}`,
		emptyEdition, rfc, rfc[:min(len(rfc), 9)])
	sum = sha256.Sum256(registro)
	return registro, sum, fmt.Appendf(nil, `{"consultado":"2026-11-20T06:00:00-06:00","engine_version":"1.0.0","registro_sha256":"%x","verification_id":%q,"versiones":[]}`, sum, id)
}

// order works off an order of three: two at 1.00 and one at 0.50.
func (b *book) order(account ledger.AccountID, org ledger.OrgID, now time.Time) {
	b.t.Helper()
	id, err := b.NextID(b.t.Context(), ledger.OrderPrefix, now)
	if err != nil {
		b.t.Fatal(err)
	}
	o := ledger.Order{OrderKey: ledger.OrderKey{Org: org, ID: id}, Service: "COMPANY", Operation: "verificarEmpresa", Edition: emptyEdition}
	b.do(account, ledger.OpenOrder{
		Now: now, ID: id, Org: org, Service: o.Service, Operation: o.Operation, Edition: o.Edition, Units: 3,
		Price: 100, Steps: []ledger.Step{{From: 3, Centavos: 50}}, Until: now.Add(time.Hour),
	})
	ids, n, err := b.NextIDs(b.t.Context(), "COM", now, 3)
	if err != nil {
		b.t.Fatal(err)
	}
	build, err := b.NewBlockBuilder()
	if err != nil {
		b.t.Fatal(err)
	}
	for build.Reset(&o, 1, ids, n); build.Room(); {
		registro, sum, acta := texts(build.NextID(), fmt.Sprintf("LOT0101%02dAA1", build.Next()))
		if err := build.Add("COMPANY_OK", registro, sum, acta, nil); err != nil {
			b.t.Fatal(err)
		}
	}
	b.do(account, ledger.FillOrder{Now: now, Block: build.Block()})
}

// The organizations of the book: two of account 11, and one of account 12.
const (
	alfa, beta, gama ledger.OrgID = 2, 4, 6
	alfaTests                     = alfa + 1 // its twin
)

// trade fills the book with every kind of row: two organizations of one account and
// one of another, money and individual uses, holds that pay and that are released, an
// order, an expiry, tests, and answers that cost nothing.
func (b *book) trade() {
	b.t.Helper()
	b.do(11, ledger.Credit{Now: start, Org: alfa, Centavos: 5_000, Reason: "transferencia 1234"})
	b.do(12, ledger.Credit{Now: start, Org: gama, Centavos: 9_000, Reason: "abono"})
	for i := range 20 {
		account, org := ledger.AccountID(11), alfa
		switch {
		case i%4 == 3:
			account, org = 12, gama
		case i%2 == 1:
			org = beta
		}
		b.charge(account, org, start.Add(time.Duration(i)*time.Hour), int64(i%3)*100, false, fmt.Sprintf("ABC0101%02dAA1", 1+i))
	}
	b.charge(11, alfaTests, start, 0, true, "EFO010101AA1")
	b.do(11, ledger.Use{Now: start, Org: alfa, Service: "NOMINA", Price: 50, Input: sha256.Sum256([]byte("x")), Basis: "uma-2026@1"})
	b.do(11, ledger.Use{Now: start, Org: beta, Service: "UTIL", Price: 40})

	// From two uses and, for the third, money.
	b.do(11, ledger.CreditUses{Now: start, Org: beta, Service: "SCREEN", Count: 2, Unit: 900, Reason: "dos usos"})
	held := b.do(11, ledger.Hold{Now: start, Org: beta, Service: "SCREEN", Units: 3, Centavos: 700, Until: start.Add(time.Hour)}).(ledger.Held)
	b.do(11, ledger.Use{Now: start, Org: beta, Service: "SCREEN", Price: 700, Hold: held.Number})
	b.do(11, ledger.Release{Now: start, Hold: held.Number})
	b.do(11, ledger.CreditUses{Now: start, Org: beta, Service: "COMPANY", Count: 1, Unit: 0, Reason: "cortesía"})
	b.charge(11, beta, start, 1200, false, "USO010101AA1")

	late := start.Add(ledger.LotLife + time.Hour)
	b.do(12, ledger.Credit{Now: late, Org: gama, Centavos: 700, Reason: "otro"})
	b.charge(12, gama, late, 100, false, "XYZ010101AA1")
	b.order(12, gama, late)
	for i := range 3 {
		b.CountUse(11, alfa, false, "UTIL", 20261120+uint32(i))
	}
	b.CountUse(11, alfaTests, true, "UTIL", 20261120)
	b.CountUse(12, gama, false, "LEGAL", 20281231)
	b.CountUse(12, gama, false, "LEGAL", 20281231)
	b.reopen()
}

func (b *book) source() export.Source {
	return export.Source{
		Dir: b.data, Ledger: b.Ledger, Progress: func(export.Progress) {},
		Catalogue: b.catalogue, Anchor: b.anchor(),
	}
}

type writer func(context.Context, string, export.Source) (export.Manifest, error)

var writers = map[string]writer{"parquet": export.Parquet, "evidencia": export.Evidence}

// exported writes an export and returns its folder.
func (b *book) exported(write writer, s export.Source) (string, export.Manifest) {
	b.t.Helper()
	to := b.t.TempDir() + "/exportacion"
	m, err := write(b.t.Context(), to, s)
	if err != nil {
		b.t.Fatal(err)
	}
	return to, m
}

// contents reads a folder: path, with slashes, to bytes.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if errors.Is(err, os.ErrNotExist) && path == dir {
			return nil
		}
		if err != nil || e.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		text, err := os.ReadFile(path)
		all[filepath.ToSlash(rel)] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestTheSameContentGivesTheSameBytes exports twice, the second time from a ledger
// that was opened anew.
func TestTheSameContentGivesTheSameBytes(t *testing.T) {
	onEachEngine(t, testSameBytes)
}

func testSameBytes(t *testing.T, newBook func(*testing.T) *book) {
	b := newBook(t)
	b.trade()
	for kind, write := range writers {
		one, _ := b.exported(write, b.source())
		b.reopen()
		two, _ := b.exported(write, b.source())
		first, second := contents(t, one), contents(t, two)
		if len(first) < 4 || len(first) != len(second) {
			t.Errorf("%s: %d and %d files", kind, len(first), len(second))
		}
		for name, text := range first {
			if second[name] != text {
				t.Errorf("%s: %s differs", kind, name)
			}
		}
	}
}

// TestTheManifestTellsTheTruth compares each member with what is there, and the text
// with its own sum.
func TestTheManifestTellsTheTruth(t *testing.T) {
	b := newBook(t)
	b.trade()
	for kind, write := range writers {
		s := b.source()
		s.Org = alfa
		dir, m := b.exported(write, s)
		files := contents(t, dir)
		text := files[export.ManifestName]
		var read export.Manifest
		if err := json.Unmarshal([]byte(text), &read); err != nil || fmt.Sprint(read) != fmt.Sprint(m) {
			t.Errorf("%s: %v\n%+v\n%+v", kind, err, read, m)
		}
		sum := read.Sum
		read.Sum = ""
		body, err := canon.Marshal(read)
		if want := sha256.Sum256(body); err != nil || sum != hex.EncodeToString(want[:]) || !strings.Contains(text, sum) {
			t.Errorf("%s: manifiesto_sha256 %s, %v", kind, sum, err)
		}
		if read.Kind != kind || read.Format != 2 || read.Org != "org_0000000000002" || len(read.Files) != len(files)-1 {
			t.Errorf("%s: %+v beside %d files", kind, read, len(files))
		}
		for _, f := range read.Files {
			sum := sha256.Sum256([]byte(files[f.Path]))
			if f.SHA256 != hex.EncodeToString(sum[:]) || f.Bytes != int64(len(files[f.Path])) {
				t.Errorf("%s: %+v", kind, f)
			}
			if strings.HasSuffix(f.Path, ".jsonl") && f.Rows != int64(strings.Count(files[f.Path], "\n")) {
				t.Errorf("%s: %+v has other lines", kind, f)
			}
		}
		heads, err := ledger.HeadsOf(b.store)
		if err != nil || len(read.Heads) != len(heads) {
			t.Fatalf("%v, %d heads", err, len(read.Heads))
		}
		for i, h := range heads {
			if want := (export.Head{Sum: hex.EncodeToString(h.Sum[:]), Group: int(h.Group), Seq: h.Seq}); read.Heads[i] != want {
				t.Errorf("%s: head %+v, want %+v", kind, read.Heads[i], want)
			}
		}
		if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s: folder %v, %v", kind, info.Mode(), err)
		}
		if info, err := os.Stat(filepath.Join(dir, export.ManifestName)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: file %v, %v", kind, info.Mode(), err)
		}
	}
}

// TestAGroupIsReadAsItWasAtOneMoment charges an account when its group is already
// being read.
func TestAGroupIsReadAsItWasAtOneMoment(t *testing.T) {
	onEachEngine(t, testOneMoment)
}

func testOneMoment(t *testing.T, newBook func(*testing.T) *book) {
	for kind, write := range writers {
		b := newBook(t)
		b.trade()
		before := b.Heads()
		s := b.source()
		extra := 0
		s.Progress = func(p export.Progress) {
			if p.Group < store.Groups && before[p.Group].Seq > 0 { // a group with one of the two accounts
				for _, account := range []ledger.AccountID{11, 12} {
					b.do(account, ledger.Credit{Now: start.Add(ledger.LotLife + 2*time.Hour), Org: alfa, Centavos: 1, Reason: "mientras"})
				}
				extra++
			}
		}
		_, m := b.exported(write, s)
		first := slices.IndexFunc(before, func(h ledger.Head) bool { return h.Seq > 0 })
		if extra == 0 || m.Heads[first].Seq != before[first].Seq || b.Heads()[first].Seq == before[first].Seq {
			t.Errorf("%s: head of group %d is %+v, was %+v, is %+v; %d", kind, first, m.Heads[first], before[first], b.Heads()[first], extra)
		}
	}
}

// TestAnInterruptedExportLeavesNothing ends the context at each word of progress.
func TestAnInterruptedExportLeavesNothing(t *testing.T) {
	b := newBook(t)
	b.trade()
	for kind, write := range writers {
		for at := 0; ; at++ {
			parent := t.TempDir()
			ctx, cancel := context.WithCancel(t.Context())
			s := b.source()
			said := 0
			s.Progress = func(export.Progress) {
				for name := range contents(t, parent) {
					if base := filepath.Base(name); !strings.HasPrefix(base, ".") || !strings.HasSuffix(base, ".parcial") {
						t.Fatalf("%s has its name before all is complete", name)
					}
				}
				if said == at {
					cancel()
				}
				said++
			}
			_, err := write(ctx, parent+"/a/b", s)
			cancel()
			if err == nil {
				if said > at {
					continue // it ended before the context was looked at again
				}
				if at < export.Groups {
					t.Errorf("%s: only %d words of progress", kind, said)
				}
				break
			}
			left := contents(t, parent)
			if dirs, _ := os.ReadDir(parent); !errors.Is(err, context.Canceled) || len(left) > 0 || len(dirs) > 0 {
				t.Fatalf("%s ended at %d: %v, left %v %v", kind, at, err, left, dirs)
			}
		}
	}
}

func TestWhereAnExportMayGo(t *testing.T) {
	b := newBook(t)
	b.trade()
	for kind, write := range writers {
		f := func(to string, allowed bool) {
			t.Helper()
			before := contents(t, filepath.Dir(to))
			_, err := write(t.Context(), to, b.source())
			if allowed != (err == nil) || !allowed && !errors.Is(err, export.ErrTarget) {
				t.Errorf("%s to %s: %v", kind, to, err)
			}
			if after := contents(t, filepath.Dir(to)); !allowed && fmt.Sprint(before) != fmt.Sprint(after) {
				t.Errorf("%s to %s changed it", kind, to)
			}
		}
		empty, full, killed := t.TempDir(), t.TempDir(), t.TempDir()
		f(empty, true)
		f(empty, false) // holds an export
		f(t.TempDir()+"/x/y", true)
		if err := os.WriteFile(full+"/notas.txt", []byte("mías"), 0o600); err != nil {
			t.Fatal(err)
		}
		f(full, false)
		f(b.data, false)
		f(b.data+"/exportacion", false)
		// What a killed one leaves has a temporary name and no manifest.
		if err := os.WriteFile(killed+"/.registros.parquet.parcial", []byte("PAR1"), 0o600); err != nil {
			t.Fatal(err)
		}
		f(killed, true)
		if names := contents(t, killed); names[".registros.parquet.parcial"] != "" {
			t.Errorf("%s: left %v", kind, names)
		}
	}
}

// TestEvidenceLeavesTestsOut looks for what a test key asked, also where only its
// organization is exported.
func TestEvidenceLeavesTestsOut(t *testing.T) {
	b := newBook(t)
	b.trade()
	for org, want := range map[ledger.OrgID]int{0: 25, alfa: 10, alfaTests: 0, beta: 6, gama: 9} {
		s := b.source()
		s.Org = org
		dir, _ := b.exported(export.Evidence, s)
		files := contents(t, dir)
		if n := strings.Count(files["registros.jsonl"], "\n"); n != want || strings.Count(files["actas.jsonl"], "\n") != want || strings.Contains(files["registros.jsonl"], "EFO010101AA1") {
			t.Errorf("organization %d: %d answers, want %d\n%s", org, n, want, files["registros.jsonl"])
		}
		orders := map[ledger.OrgID]int{0: 1, gama: 1}[org]
		if strings.Count(files["lotes.jsonl"], "\n") != orders || strings.Count(files["cargos.jsonl"], "\n") != 2*orders {
			t.Errorf("organization %d: want %d orders\n%s%s", org, orders, files["lotes.jsonl"], files["cargos.jsonl"])
		}
	}
}
