package evidence

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"cotejo/accounts"
	"cotejo/civil"
	"cotejo/expedientes"
	"cotejo/ledger"
	"cotejo/snapshots"
	"cotejo/store"
)

const (
	account = ledger.AccountID(7)
	org     = ledger.OrgID(20)
	sister  = ledger.OrgID(30)
)

var (
	ctx  = context.Background()
	noon = time.Date(2026, 11, 20, 18, 0, 0, 0, time.UTC)
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// openBook is a ledger on an empty store in memory, checked at its end.
func openBook(t testing.TB) *ledger.Ledger {
	s := must(store.OpenPebble("cuentas", store.PebbleOptions{FS: vfs.NewMem()}))
	l := must(ledger.Open(s, ledger.Options{Random: bytes.NewReader(make([]byte, 64))}))
	t.Cleanup(func() {
		if _, err := ledger.Check(ctx, s); err != nil {
			t.Error(err)
		}
		if err := errors.Join(l.Close(), s.Close()); err != nil {
			t.Error(err)
		}
	})
	return l
}

// charge records an answer that has the form of a service's.
func charge(l *ledger.Ledger, org ledger.OrgID, now time.Time, price int64, n int) ledger.VerificationID {
	id := must(l.NextID(ctx, "COM", now))
	edition, registro, sum, acta := texts(id, now, n)
	must(l.Do(ctx, account, ledger.Charge{Now: now, Sum: sum, Price: price, Record: ledger.Record{
		ID: id, Org: org, Service: "COMPANY", Code: "COMPANY_OK", Operation: "verificarEmpresa", Edition: edition, Registro: registro, Acta: acta,
	}}))
	return id
}

// texts are those of an answer that has the form of a service's.
func texts(id ledger.VerificationID, now time.Time, n int) (edition [32]byte, registro []byte, sum [32]byte, acta []byte) {
	edition = sha256.Sum256([]byte{byte(n / 1000)})
	registro = fmt.Appendf(nil, `{"edicion_sha256":"%x","entrada":{"rfc":"AAA%06dAA1"},"fecha":"%s","motor":"COMPANY/2","observado":null,`+
		`"resultado":{"rfc":"AAA%06dAA1","sat_69b":{"estado":"COINCIDENCIA","fuente":{"id":"sat_69b","sha256":"%x"},"situaciones":[{"nombre":"%s"}]},"result_code":"COMPANY_OK"}}`,
		edition, n, civil.Of(now), n, edition, strings.Repeat("x", 1000))
	sum = sha256.Sum256(registro)
	acta = fmt.Appendf(nil, `{"consultado":"%s","engine_version":"1.0.0","registro_sha256":"%x","verification_id":"%v","versiones":[`+
		`{"descargada":"2026-11-01T00:00:00-06:00","id":%d,"obtenida_de":"archivo:x","publicada_en_reset":"2026-11-01T00:00:00-06:00","sha256":"%x","source":"sat_69b","url":"https://x"}]}`,
		civil.Timestamp(now), sum, id, 1+n/1000, edition)
	return edition, registro, sum, acta
}

// order works off an order of three at 12.00, the last at 8.00, in one block; a use pays
// the first.
func order(l *ledger.Ledger, org ledger.OrgID, now time.Time) ledger.VerificationID {
	must(l.Do(ctx, account, ledger.CreditUses{Now: now, Org: org, Service: "COMPANY", Count: 1, Reason: "uso"}))
	id := must(l.NextID(ctx, ledger.OrderPrefix, now))
	edition, _, _, _ := texts(id, now, 0)
	o := ledger.Order{OrderKey: ledger.OrderKey{Org: org, ID: id}, Service: "COMPANY", Operation: "verificarEmpresa", Edition: edition}
	must(l.Do(ctx, account, ledger.OpenOrder{
		Now: now, ID: id, Org: org, Service: o.Service, Operation: o.Operation, Edition: edition, Units: 3,
		Price: 12_00, Steps: []ledger.Step{{From: 3, Centavos: 8_00}}, Until: now.Add(time.Hour),
	}))
	ids, n, err := l.NextIDs(ctx, "COM", now, 3)
	if err != nil {
		panic(err)
	}
	b := must(l.NewBlockBuilder())
	for b.Reset(&o, 1, ids, n); b.Room(); {
		_, registro, sum, acta := texts(b.NextID(), now, 500+b.Next())
		if err := b.Add("COMPANY_OK", registro, sum, acta, nil); err != nil {
			panic(err)
		}
	}
	must(l.Do(ctx, account, ledger.FillOrder{Now: now, Block: b.Block()}))
	return id
}

func credit(l *ledger.Ledger, now time.Time, centavos int64) {
	must(l.Do(ctx, account, ledger.Credit{Now: now, Org: org, Centavos: centavos, Reason: "abono"}))
}

// dossierOf is a dossier of November 2026 as of now.
func dossierOf(t testing.TB, l *ledger.Ledger) *dossier {
	view := must(l.View(account))
	t.Cleanup(func() { _ = view.Close() })
	d := dossierWith(view)
	d.head = must(view.Head())
	return d
}

func dossierWith(view *ledger.View) *dossier {
	return &dossier{
		id: ledger.VerificationID{Prefix: "EXP", Day: 20261120, Counter: 1, Code: 0xabcd}, moment: noon,
		org:    accounts.Organization{ID: org, Account: account, Name: "Ñandú \"SA\""},
		span:   span{civil.Date{Year: 2026, Month: 11, Day: 1}, civil.Date{Year: 2026, Month: 11, Day: 30}},
		view:   view,
		finish: func(context.Context, [sha256.Size]byte) error { return nil },
	}
}

// parsed is what the tests read of a dossier.
type parsed struct {
	Verifications []struct {
		ID       string          `json:"verification_id"`
		Answer   json.RawMessage `json:"respuesta"`
		Registro json.RawMessage `json:"registro"`
		Sum      string          `json:"registro_sha256"`
		Acta     json.RawMessage `json:"acta"`
		ActaSum  string          `json:"acta_sha256"`
		Charge   *struct {
			Number uint64 `json:"movimiento"`
			Kind   string `json:"tipo"`
			Amount string `json:"monto"`
			Order  string `json:"lote_id"`
			From   int    `json:"desde"`
			To     int    `json:"hasta"`
			Unit   string `json:"precio_unitario"`
		} `json:"cargo"`
		Position int    `json:"posicion"`
		Amount   string `json:"importe"`
	} `json:"verificaciones"`
	Account struct {
		Before string `json:"suma_antes"`
		After  string `json:"suma_despues"`
		Last   uint64 `json:"movimiento_despues"`
	} `json:"cuenta"`
	Movements []struct {
		Number uint64 `json:"movimiento"`
		Kind   string `json:"tipo"`
		Amount string `json:"monto"`
		ID     string `json:"verification_id"`
	} `json:"movimientos"`
	Versions []struct {
		ID int `json:"source_version_id"`
	} `json:"versiones"`
	Editions []struct {
		Sum string `json:"edicion_sha256"`
	} `json:"ediciones"`
	Summary struct {
		Verifications totals `json:"verificaciones"`
		Movements     map[string]struct {
			Count  int64  `json:"movimientos"`
			Amount string `json:"monto"`
		} `json:"movimientos"`
	} `json:"resumen"`
	Sum string `json:"contenido_sha256"`
}

// check recomputes all that the text says of itself.
func check(t *testing.T, text []byte) (p parsed) {
	t.Helper()
	if err := json.Unmarshal(text, &p); err != nil {
		t.Fatal(err)
	}
	const tail = len(`,"contenido_sha256":""}`) + 2*sha256.Size
	if tail != 87 {
		t.Fatalf("the documented tail is 87 bytes, not %d", tail)
	}
	if got := fmt.Sprintf("%x", sha256.Sum256(text[:len(text)-tail])); got != p.Sum {
		t.Errorf("contenido_sha256 is %s, the content's %s", p.Sum, got)
	}
	for _, v := range p.Verifications {
		if fmt.Sprintf("%x", sha256.Sum256(v.Registro)) != v.Sum || fmt.Sprintf("%x", sha256.Sum256(v.Acta)) != v.ActaSum {
			t.Errorf("%s: registro or acta have other hashes", v.ID)
		}
	}
	return p
}

// TestDossier: what is in it, and that its sums are those of the account.
func TestDossier(t *testing.T) {
	l := openBook(t)
	october, november := noon.AddDate(0, -1, 0), noon.AddDate(0, 0, -1)
	credit(l, october, 1000_00)
	charge(l, org, october, 12_00, 0)
	first := charge(l, org, november, 12_00, 1)
	free := charge(l, org, november, 0, 2)
	charge(l, sister, november, 9_00, 3)
	must(l.Do(ctx, account, ledger.Use{Now: november, Org: org, Service: "DATO", Price: 5, Basis: "bancos 2026"}))
	must(l.Do(ctx, account, ledger.Use{Now: november, Org: sister, Service: "DATO", Price: 5}))
	d := dossierOf(t, l)
	charge(l, org, november, 12_00, 4) // behind the view
	var out bytes.Buffer
	if err := d.write(ctx, &out); err != nil {
		t.Fatal(err)
	}
	p := check(t, out.Bytes())
	if len(p.Verifications) != 2 || p.Verifications[0].ID != first.String() || p.Verifications[1].ID != free.String() {
		t.Fatalf("verifications: %+v", p.Verifications)
	}
	if c := p.Verifications[0].Charge; c == nil || c.Amount != "-12.00" || c.Number != 3 || p.Verifications[1].Charge != nil {
		t.Errorf("charge: %+v", c)
	}
	if p.Account.Before != "988.00" || p.Account.After != "966.90" || p.Account.Last != 6 {
		t.Errorf("account: %+v", p.Account)
	}
	if len(p.Movements) != 2 || p.Movements[0].ID != first.String() || p.Movements[1].Kind != "uso" || p.Movements[1].Amount != "-0.05" {
		t.Errorf("movements: %+v", p.Movements)
	}
	if s := p.Summary.Movements; s["propios"].Amount != "-12.05" || s["otras_entidades"].Amount != "-9.05" || s["otras_entidades"].Count != 2 || s["de_la_cuenta"].Count != 0 {
		t.Errorf("sums: %+v", s)
	}
	if v := p.Summary.Verifications; v.Answers != 2 || v.Charged != 1 || v.Amount != "12.00" {
		t.Errorf("summary: %+v", v)
	}
	if len(p.Versions) != 1 || p.Versions[0].ID != 1 || len(p.Editions) != 1 {
		t.Errorf("versions %+v, editions %+v", p.Versions, p.Editions)
	}
	for _, of := range []string{"AAA000003AA1", "AAA000000AA1", "AAA000004AA1"} {
		if bytes.Contains(out.Bytes(), []byte(of)) {
			t.Errorf("it shows %s, of a sister, of another month or of later", of)
		}
	}
}

// TestDossierOfAnOrder: each verification of an order has the movement that paid for
// it, and what of it was its own.
func TestDossierOfAnOrder(t *testing.T) {
	l := openBook(t)
	november := noon.AddDate(0, 0, -1)
	credit(l, november, 1000_00)
	id := order(l, org, november).String()
	order(l, sister, november)
	var out bytes.Buffer
	if err := dossierOf(t, l).write(ctx, &out); err != nil {
		t.Fatal(err)
	}
	p := check(t, out.Bytes())
	if len(p.Verifications) != 3 {
		t.Fatalf("verifications: %+v", p.Verifications)
	}
	for i, want := range []struct{ amount, unit, own string }{{"0.00", "0.00", "0.00"}, {"-12.00", "12.00", "12.00"}, {"-8.00", "8.00", "8.00"}} {
		v := p.Verifications[i]
		if c := v.Charge; c == nil || c.Kind != "lote" || c.Order != id || c.From != i+1 || c.To != i+1 || c.Amount != want.amount || c.Unit != want.unit ||
			v.Position != i+1 || v.Amount != want.own {
			t.Errorf("verification %d: %+v, %+v; want %+v", i+1, v, v.Charge, want)
		}
	}
	var kinds []string
	for _, m := range p.Movements {
		kinds = append(kinds, m.Kind)
	}
	if want := []string{"abono", "abono", "retencion", "lote", "lote", "lote"}; !slices.Equal(kinds, want) {
		t.Errorf("movements %v; want %v", kinds, want)
	}
	if v := p.Summary.Verifications; v.Answers != 3 || v.Charged != 3 || v.Amount != "20.00" || v.Uses != 1 {
		t.Errorf("summary: %+v", v)
	}
	if s := p.Summary.Movements; s["propios"].Amount != "980.00" || s["otras_entidades"].Amount != "-20.00" {
		t.Errorf("sums: %+v", s)
	}
}

// TestDossierIsTheSame: of one view and moment it has one text, in both formats.
func TestDossierIsTheSame(t *testing.T) {
	l := openBook(t)
	credit(l, noon, 1000_00)
	var ids []string
	for n := range 30 {
		ids = append(ids, charge(l, org, noon, 12_00, n*500).String())
	}
	d := dossierOf(t, l)
	sources := must(snapshots.OpenCatalogue(t.TempDir()))
	var plain, packed [2]bytes.Buffer
	for i := range 2 {
		if err := errors.Join(d.write(ctx, &plain[i]), d.writeArchive(ctx, &packed[i], sources)); err != nil {
			t.Fatal(err)
		}
		charge(l, org, noon, 12_00, i)
	}
	if !bytes.Equal(plain[0].Bytes(), plain[1].Bytes()) || !bytes.Equal(packed[0].Bytes(), packed[1].Bytes()) {
		t.Fatal("it changed")
	}
	z := must(zip.NewReader(bytes.NewReader(packed[0].Bytes()), int64(packed[0].Len())))
	file := func(name string) []byte { return must(io.ReadAll(must(z.Open(name)))) }
	if !bytes.Equal(file("expediente.json"), plain[0].Bytes()) {
		t.Error("the archive has another dossier")
	}
	p := check(t, plain[0].Bytes())
	if len(p.Verifications) != len(ids) || len(p.Versions) != 15 {
		t.Fatalf("%d verifications, %d versions", len(p.Verifications), len(p.Versions))
	}
	registros, actas := strings.Split(string(file("registros.ndjson")), "\n"), strings.Split(string(file("actas.ndjson")), "\n")
	if len(registros) != len(ids)+1 || len(actas) != len(ids)+1 {
		t.Fatalf("%d and %d lines", len(registros), len(actas))
	}
	for i, v := range p.Verifications {
		if v.ID != ids[i] || registros[i] != string(v.Registro) || actas[i] != string(v.Acta) {
			t.Errorf("line %d is not that of %s", i, v.ID)
		}
	}
	// The catalogue lacks the versions, and the archive says so.
	if missing := string(file("FALTANTES.txt")); strings.Count(missing, "\n") != len(p.Versions)+len(p.Editions) {
		t.Errorf("FALTANTES.txt: %s", missing)
	}
}

// TestDossierWithoutEnd: without a hash that was noted, and after a client that left,
// the text does not end.
func TestDossierWithoutEnd(t *testing.T) {
	l := openBook(t)
	credit(l, noon, 100_00)
	charge(l, org, noon, 12_00, 1)
	d := dossierOf(t, l)
	broken := errors.New("no se anotó")
	d.finish = func(context.Context, [sha256.Size]byte) error { return broken }
	var out bytes.Buffer
	if err := d.write(ctx, &out); !errors.Is(err, broken) || json.Valid(out.Bytes()) || bytes.Contains(out.Bytes(), []byte("contenido_sha256")) {
		t.Errorf("%v: %s", err, out.Bytes())
	}
	gone, leave := context.WithCancelCause(ctx)
	leave(broken)
	if err := d.write(gone, io.Discard); !errors.Is(err, broken) {
		t.Errorf("after its client left: %v", err)
	}
}

// TestDossierSeesWhatIsWrong: of an account whose movements do not add up no dossier
// ends.
func TestDossierSeesWhatIsWrong(t *testing.T) {
	s := must(store.OpenPebble("cuentas", store.PebbleOptions{FS: vfs.NewMem()}))
	l := must(ledger.Open(s, ledger.Options{}))
	defer func() { _ = errors.Join(l.Close(), s.Close()) }()
	credit(l, noon, 100_00)
	charge(l, org, noon, 12_00, 1)
	must(l.Do(ctx, account, ledger.Use{Now: noon, Org: org, Service: "DATO", Price: 5}))
	view := must(l.View(account))
	group := must(view.Head()).Group
	_ = view.Close()
	// Movement 3 becomes movement 1 again: both are readable.
	var key, value []byte
	err := s.Reader(group).Scan(nil, nil, func(k, v []byte) error {
		const movements = 0x11
		if len(k) == 18 && k[9] == movements && k[17] == 1 {
			value = bytes.Clone(v)
		}
		if len(k) == 18 && k[9] == movements && k[17] == 3 {
			key = bytes.Clone(k)
		}
		return nil
	})
	if err != nil || key == nil || value == nil {
		t.Fatal(key, value, err)
	}
	epoch, seq, err := s.Acquire(group)
	if err == nil {
		err = s.Commit(store.Batch{Group: group, Epoch: epoch, Seq: seq + 1, Puts: []store.Put{{Key: key, Value: value}}})
	}
	if err != nil {
		t.Fatal(err)
	}
	view = must(l.View(account))
	defer view.Close()
	d := dossierWith(view)
	var out bytes.Buffer
	if err := d.write(ctx, &out); !errors.Is(err, errInconsistent) || bytes.Contains(out.Bytes(), []byte("contenido_sha256")) {
		t.Errorf("%v: %s", err, out.Bytes())
	}
}

// TestDossierMemory: what is held does not grow with the dossier.
func TestDossierMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("50,000 records")
	}
	const records = 50_000
	l := openBook(t)
	credit(l, noon, 12_00*records)
	done := make(chan bool)
	const askers = 64
	for a := range askers {
		go func() {
			for n := a; n < records; n += askers {
				charge(l, org, noon, 12_00, n)
			}
			done <- true
		}()
	}
	for range askers {
		<-done
	}
	d := dossierOf(t, l)
	var before, now runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var size int64
	most := int64(math.MinInt64)
	count := writerFunc(func(p []byte) (int, error) {
		if size>>24 != (size+int64(len(p)))>>24 { // every 16 MiB
			runtime.GC()
			runtime.ReadMemStats(&now)
			most = max(most, int64(now.HeapAlloc)-int64(before.HeapAlloc))
		}
		size += int64(len(p))
		return len(p), nil
	})
	if err := d.write(ctx, count); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d records, %d MiB, the heap grew by %d KiB at most", records, size>>20, most>>10)
	if size < 100<<20 || most > 32<<20 {
		t.Errorf("%d bytes written, %d held", size, most)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// TestReadmeRecipe holds that what LEEME.txt says is what is done.
func TestReadmeRecipe(t *testing.T) {
	for _, want := range []string{"head -c -87 ", "tail -c 66 ", "registros.ndjson", "actas.ndjson", "versiones/", "ediciones/", "FALTANTES.txt"} {
		if !strings.Contains(string(readme), want) {
			t.Errorf("LEEME.txt lacks %s", want)
		}
	}
	if got := len(hex.EncodeToString(make([]byte, sha256.Size)) + `"}`); got != 66 {
		t.Errorf("the hash and what follows it are %d bytes", got)
	}
	if expedientes.Prefix != "EXP" {
		t.Error("the prefix is documented as EXP")
	}
}
