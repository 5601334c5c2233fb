package api

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/klauspost/compress/zstd"
	"github.com/valyala/fasthttp/fasthttputil"

	"cotejo/accesslog"
	"cotejo/accounts"
	"cotejo/catalog"
	"cotejo/civil"
	"cotejo/ingest"
	"cotejo/ledger"
	"cotejo/mail"
	"cotejo/operation"
	"cotejo/products/evidence"
	"cotejo/products/organization"
	"cotejo/products/platform"
	"cotejo/products/registration"
	"cotejo/sandbox"
	"cotejo/snapshots"
	"cotejo/store"
	"cotejo/testdata/mirror"
)

// noon is the moment of the tests: 20 November 2026, 10:15 in Mexico City.
var noon = time.Date(2026, 11, 20, 16, 15, 0, 0, time.UTC)

// fixture is the whole service on one machine: real sources, store, ledger and
// accounts, reached over HTTP. Every answer is checked against the OpenAPI
// document as it arrives.
type fixture struct {
	t        testing.TB
	table    operation.Table
	pipeline *operation.Pipeline
	sources  *snapshots.Catalogue
	// sourcesDir is its folder.
	sourcesDir string
	live       *snapshots.Live
	accounts   *accounts.Service
	listener   *fasthttputil.InmemoryListener
	// keys are live, poor (no money), other, test (each of an account of its own), sister (of
	// the account of live), twin (the test key of live), only_read (live, limited to
	// consultarOrganizacion), admin and registro; orgs are what they belong to.
	keys   map[string]string
	orgs   map[string]accounts.Organization
	random *seededRandom
	log    *logBuffer
	access *accesslog.Log
	server *Server
	// stopLots ends the work on lists, until runLots.
	stopLots func()
	elapsed  time.Duration // of the limits; under mu
	disk     vfs.FS        // of the account data
	store    *heldStore    // on it
	full     atomic.Bool   // the disk
	peer     netip.Addr    // where requests come from; zero: no IP address

	mu   sync.Mutex
	now  time.Time      // under mu
	jobs []platform.Job // under mu

	letters []mail.Message // under mu: what was sent
	mailErr error          // under mu: why nothing is sent
}

// sandboxDir holds the sources of the sandbox, loaded once for every fixture, none of
// which writes there.
var sandboxDir = sync.OnceValue(func() string {
	dir := must(os.MkdirTemp("", "pruebas"))
	c := must(snapshots.OpenCatalogue(dir))
	for _, file := range sandbox.Files() {
		must(ingest.Ingest(context.Background(), c, ingest.Request{Source: file.Source, Name: file.Name, Content: file.Open, Corte: file.Corte, Now: file.Downloaded}))
	}
	return dir
})

func newFixture(t testing.TB) *fixture {
	f := &fixture{t: t, now: noon, keys: map[string]string{}, orgs: map[string]accounts.Organization{}, log: &logBuffer{}, disk: vfs.NewMem()}
	dir := t.TempDir()
	f.sourcesDir = filepath.Join(dir, "fuentes")
	f.sources = must(snapshots.OpenCatalogue(f.sourcesDir))
	tests := must(snapshots.OpenCatalogue(sandboxDir()))
	f.live = must(snapshots.NewLive(f.sources, catalog.Prepare))
	testLive := must(snapshots.NewLive(tests, catalog.Prepare))

	pebble := must(store.OpenPebble("cuentas", store.PebbleOptions{FS: f.disk}))
	f.store = &heldStore{Store: pebble}
	f.random = newRandom(1) // ids and keys are the same in every run
	pepper := bytes.Repeat([]byte{7}, 32)
	book := must(ledger.Open(f.store, ledger.Options{Random: f.random}))
	f.accounts = accounts.New(book, pepper, f.random, f.clock)
	f.organization("live", accounts.Live, 100_00)
	f.organization("poor", accounts.Live, 0)
	f.organization("other", accounts.Live, 100_00)
	f.organization("test", accounts.Test, 0)
	f.key("admin", accounts.KeyRequest{Mode: accounts.Admin})
	f.key("only_read", accounts.KeyRequest{Org: f.orgs["live"].ID, Mode: accounts.Live, Only: []string{"consultarOrganizacion"}})
	f.key("twin", accounts.KeyRequest{Org: f.orgs["live"].ID, Mode: accounts.Test})
	f.orgs["sister"] = must(f.accounts.AddOrganization(context.Background(), accounts.OrganizationRequest{Account: f.orgs["live"].Account, Name: "Organización sister"}))
	f.key("sister", accounts.KeyRequest{Org: f.orgs["sister"].ID, Mode: accounts.Live})
	f.registrar("registro", accounts.RegistrationKeySpec{Name: "Prueba"})
	f.access = accesslog.Open(accesslog.Options{Dir: filepath.Join(dir, "accesos"), Log: slog.New(slog.NewJSONHandler(f.log, nil))})

	f.pipeline = &operation.Pipeline{Live: f.live, Sandbox: testLive, Ledger: book, Accounts: f.accounts, Now: f.clock, Full: f.full.Load,
		InputKey: operation.InputKey(pepper)}
	f.table = tableOf(
		platform.Config{Catalogue: f.sources, Live: f.live, Pipeline: f.pipeline, Now: f.clock, Jobs: f.jobStates, Access: f.access, AccessDays: 365},
		organization.Config{Accounts: f.accounts, Set: catalog.Embedded(), Now: f.clock},
		evidence.Config{Catalogue: f.sources, Sandbox: tests, Pipeline: f.pipeline, Now: f.clock},

		registration.Config{Accounts: f.accounts, Catalogs: catalog.Embedded(), Now: f.clock, Send: f.post}, book)
	f.limit(operation.DefaultKeyRate, operation.DefaultAddressRate)
	server := must(New(Config{Table: f.table, Pipeline: f.pipeline, Log: slog.New(slog.NewJSONHandler(f.log, nil)), Access: f.access, Trusted: proxies}))
	f.server = server
	f.listener = fasthttputil.NewInmemoryListener()
	served := make(chan error, 1)
	go func() { served <- server.Serve(f.listener) }()
	f.runLots()
	t.Cleanup(func() {
		f.stopLots()
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		for _, err := range []error{server.Shutdown(ctx), <-served, book.Close(), pebble.Close(), f.live.Close(), testLive.Close()} {
			if err != nil {
				t.Error(err)
			}
		}
		f.access.Close()
	})
	return f
}

// runLots begins the work on lists, as a process does that starts.
func (f *fixture) runLots() {
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		f.pipeline.RunLots(ctx, f.table, nil, slog.New(slog.NewJSONHandler(f.log, nil)))
	}()
	f.stopLots = func() {
		stop()
		<-ended
	}
}

// limit sets the limits of keys and addresses, before anything is asked; nobody has
// used them up.
func (f *fixture) limit(keys, addresses string) {
	f.pipeline.Throttle = must(operation.NewThrottle(keys, addresses, func() time.Duration {
		f.mu.Lock()
		defer f.mu.Unlock()
		return f.elapsed
	}))
}

// accessLines are what the access log holds, as it is on the disk. It keeps nothing
// from then on.
func (f *fixture) accessLines() string {
	f.t.Helper()
	f.access.Close() // or a day that ended might just be packed
	unpack := must(zstd.NewReader(nil))
	defer unpack.Close()
	var lines []byte
	for _, name := range must(filepath.Glob(filepath.Join(f.access.Dir, "*.jsonl.zst"))) {
		lines = must(unpack.DecodeAll(must(os.ReadFile(name)), lines))
	}
	return string(lines)
}

// heldStore is a store whose disk can stand still.
type heldStore struct {
	store.Store
	disk    sync.RWMutex // a commit holds it for reading, hold for writing
	waiting atomic.Int32 // commits that stand still
}

// Commit implements store.Store.
func (s *heldStore) Commit(batches ...store.Batch) error {
	s.waiting.Add(1)
	s.disk.RLock()
	defer s.disk.RUnlock()
	s.waiting.Add(-1)
	return s.Store.Commit(batches...)
}

// hold makes every commit stand still until the returned function is called.
func (s *heldStore) hold() (release func()) {
	s.disk.Lock()
	return s.disk.Unlock
}

// organization creates one with a key of the given name and some money.
func (f *fixture) organization(name string, mode accounts.Mode, centavos int64) {
	ctx := context.Background()
	_, orgs, err := f.accounts.CreateAccount(ctx, accounts.AccountRequest{Name: "Organización " + name})
	if err != nil {
		f.t.Fatal(err)
	}
	if centavos > 0 {
		must(f.accounts.Credit(ctx, orgs[0].ID, centavos, "prueba"))
	}
	f.orgs[name] = orgs[0]
	f.key(name, accounts.KeyRequest{Org: orgs[0].ID, Mode: mode})
}

// key creates a key of the given name.
func (f *fixture) key(name string, r accounts.KeyRequest) {
	secret, _, err := f.accounts.CreateKey(context.Background(), r)
	if err != nil {
		f.t.Fatal(err)
	}
	f.keys[name] = secret
}

// registrar makes a registration key of the given name.
func (f *fixture) registrar(name string, spec accounts.RegistrationKeySpec) accounts.RegistrationKey {
	secret, key, err := f.accounts.CreateRegistrationKey(context.Background(), spec)
	if err != nil {
		f.t.Fatal(err)
	}
	f.keys[name] = secret
	return key
}

// post takes letters over, as the outbox does.
func (f *fixture) post(_ string, m mail.Message, _ time.Duration) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.mailErr == nil {
		f.letters = append(f.letters, m)
	}
	return f.mailErr
}

// sent is what was sent, oldest first.
func (f *fixture) sent() []mail.Message {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.letters)
}

var codeInLetter = regexp.MustCompile(`[0-9A-Z]{4}-[0-9A-Z]{4}`)

// code is the code in the newest letter, "" when it has none.
func (f *fixture) code() string {
	if all := f.sent(); len(all) > 0 {
		return codeInLetter.FindString(all[len(all)-1].Text)
	}
	return ""
}

// seededRandom gives the same bytes in every run.
type seededRandom struct {
	mu  sync.Mutex
	src *rand.ChaCha8 // under mu
}

func newRandom(seed byte) *seededRandom {
	r := &seededRandom{}
	r.reseed(seed)
	return r
}

// Read implements io.Reader.
func (r *seededRandom) Read(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.src.Read(p)
}

// reseed makes what comes next independent of what came before.
func (r *seededRandom) reseed(seed byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.src = rand.NewChaCha8([32]byte{seed})
}

// loadStage makes a stage of the mirror the current edition of live keys.
func (f *fixture) loadStage(stage int) ingest.Result {
	f.t.Helper()
	content, ok := mirror.File(stage, mirror.Listado69B)
	if !ok {
		f.t.Fatalf("the mirror has no stage %d", stage)
	}
	return f.load(content)
}

// scripted are the sources of the mirror beside sat_69b, by their names in scripts.
var scripted = map[string]struct{ source, file string }{
	"bis":        {"sat_69b_bis", mirror.Listado69BBis},
	"fix":        {"banxico_fix", mirror.FIX},
	"spei":       {"banxico_spei", mirror.SPEI},
	"numeracion": {"ift_numeracion", mirror.Numbering},
	"firmes":     {"sat_art69_firmes", mirror.Firmes},
	"entes":      {"sat_art69_entes_publicos_omisos", mirror.Art69[12]},

	"contratos2018": {"compranet_2018", mirror.Contracts(2018)},
	"contratos2025": {"compranet_2025", mirror.Contracts(2025)},
	"contratos2026": {"compranet_2026", mirror.Contracts(2026)},

	"directorio":  {"sabg_proveedores_sancionados", mirror.Directory},
	"pdn":         {"pdn_s3_particulares", mirror.PrivatePersons},
	"morales":     {"pdn_s3_faltas_graves_personas_morales", mirror.SanctionedFirms},
	"abiertos":    {"sfp_proveedores_sancionados", mirror.OpenSanctions},
	"exportacion": {"sabg_proveedores_sancionados_xlsx", mirror.DirectoryExport},
}

// loadScripted makes a stage of one of them the current edition, with one text in
// it replaced, if any.
func (f *fixture) loadScripted(stage int, name, from, to string) {
	f.t.Helper()
	s, known := scripted[name]
	content, ok := mirror.File(stage, s.file)
	if !known || !ok || from != "" && bytes.Count(content, []byte(from)) != 1 {
		f.t.Fatalf("the mirror has no stage %d of %q, or not one %q in it", stage, name, from)
	}
	if from != "" {
		content = bytes.Replace(content, []byte(from), []byte(to), 1)
	}
	corte := corteOf[s.source]
	if strings.HasPrefix(s.source, "sat_art69_") {
		corte = mirror.DayFirmes(stage)
	}
	if name == "directorio" {
		corte = mirror.DayDirectory(stage)
	}
	f.loadAs(s.source, path.Base(s.file), content, corte)
}

// corteOf are days of the lists that state none.
var corteOf = map[string]civil.Date{
	"banxico_spei":   {Year: 2026, Month: 9, Day: 1},
	"ift_numeracion": {Year: 2026, Month: 9, Day: 2},
	"compranet_2018": {Year: 2019, Month: 1, Day: 31},
	"compranet_2025": {Year: 2026, Month: 7, Day: 31},
	"compranet_2026": {Year: 2026, Month: 11, Day: 1},

	"pdn_s3_particulares":                   {Year: 2026, Month: 10, Day: 1},
	"pdn_s3_faltas_graves_personas_morales": {Year: 2026, Month: 10, Day: 2},
	"sabg_proveedores_sancionados_xlsx":     {Year: 2026, Month: 10, Day: 3},
}

func (f *fixture) load(content []byte) ingest.Result {
	f.t.Helper()
	return f.loadAs("sat_69b", "Listado_completo_69-B.csv", content, civil.Date{})
}

func (f *fixture) loadAs(source, name string, content []byte, corte civil.Date) ingest.Result {
	f.t.Helper()
	r := f.ingest(f.sources, ingest.Request{
		Source: source, Name: name, Corte: corte, Now: f.clock(),
		Content: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil },
	})
	if _, err := f.live.Refresh(); err != nil {
		f.t.Fatal(err)
	}
	return r
}

func (f *fixture) ingest(c *snapshots.Catalogue, r ingest.Request) ingest.Result {
	f.t.Helper()
	result, err := ingest.Ingest(context.Background(), c, r)
	if err != nil {
		f.t.Fatal(err)
	}
	return result
}

func (f *fixture) clock() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.now
}

func (f *fixture) advance(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now, f.elapsed = f.now.Add(d), f.elapsed+max(d, 0)
}

// runJob is a run that begins and ends now; the next one is in nine hours.
func (f *fixture) runJob(said string) {
	name, rest, _ := strings.Cut(said, " ")
	status, detail, _ := strings.Cut(rest, " ")
	f.mu.Lock()
	defer f.mu.Unlock()
	j := platform.Job{Name: name}
	at := slices.IndexFunc(f.jobs, func(j platform.Job) bool { return j.Name == name })
	if at < 0 {
		at, f.jobs = len(f.jobs), append(f.jobs, j)
	}
	j.Success = f.jobs[at].Success
	j.Status, j.Detail, j.Last, j.Next = status, detail, f.now, f.now.Add(9*time.Hour)
	switch status {
	case "ok", "sin_cambio", "cuarentena":
		j.Success = f.now
	case "pendiente":
		j.Last = time.Time{}
	case "en_curso":
		j.Next = time.Time{}
	}
	f.jobs[at] = j
}

func (f *fixture) jobStates() []platform.Job {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.jobs)
}

// answer is one HTTP answer.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// get asks for a target as it is written, with the key of a name ("" for none).
func (f *fixture) get(target, key string) answer {
	f.t.Helper()
	return f.send("GET", target, f.keyHeader(key)...)
}

func (f *fixture) keyHeader(name string) []string {
	if name == "" {
		return nil
	}
	key, ok := f.keys[name]
	if !ok {
		key = name // written out in the test
	}
	if strings.HasPrefix(key, "svc_reg_") {
		return []string{"X-Registro-Key: " + key}
	}
	return []string{"X-Api-Key: " + key}
}

// send writes a request with the given header lines.
func (f *fixture) send(method, target string, headers ...string) answer {
	f.t.Helper()
	var b strings.Builder
	b.WriteString(method + " " + target + " HTTP/1.1\r\nHost: cotejo.test\r\n")
	for _, h := range headers {
		b.WriteString(h + "\r\n")
	}
	return f.raw(method, target, b.String()+"\r\n")
}

// sendBody writes a request with a body, none if it is nil: JSON unless a header says
// otherwise.
func (f *fixture) sendBody(method, target string, body []byte, headers ...string) answer {
	f.t.Helper()
	if body == nil {
		return f.send(method, target, headers...)
	}
	lines := append(headers, fmt.Sprintf("Content-Length: %d", len(body)))
	if !slices.ContainsFunc(headers, func(h string) bool { return strings.HasPrefix(h, "Content-Type:") }) {
		lines = append(lines, "Content-Type: application/json")
	}
	request := method + " " + target + " HTTP/1.1\r\nHost: cotejo.test\r\n" + strings.Join(lines, "\r\n") + "\r\n\r\n" + string(body)
	return f.raw(method, target, request)
}

// raw writes bytes as they are and reads one answer, which must be one that the
// OpenAPI document promises for the method and target.
func (f *fixture) raw(method, target, request string) answer {
	f.t.Helper()
	var local net.Addr
	if f.peer.IsValid() {
		local = net.TCPAddrFromAddrPort(netip.AddrPortFrom(f.peer, 4711))
	}
	conn := must(f.listener.DialWithLocalAddr(local))
	defer conn.Close()
	go conn.Write([]byte(request)) // an answer may come before all is read
	a := read(f.t, conn, method)
	checkContract(f.t, f.table, method, target, a)
	return a
}

func read(t testing.TB, conn net.Conn, method string) answer {
	t.Helper()
	resp, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: method})
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header, body}
}

// logBuffer collects the log of a server.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
