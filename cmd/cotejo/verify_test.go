package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"cotejo/admin"
	"cotejo/civil"
	"cotejo/operation"
	"cotejo/products/company"
	"cotejo/snapshots"
	"cotejo/store"
	"cotejo/testdata/mirror"
)

// answered gives a data directory that holds two versions and one answer for
// each RFC, from the second, and returns their ids.
func answered(t *testing.T, rfcs ...string) (data string, ids []string) {
	t.Helper()
	data = loadedData(t, 0)
	cotejo(t, 0, "ingest", "--file", "sat_69b="+stageFile(t, 1), "--data", data)
	return data, ask(t, data, rfcs...)
}

// ask answers each RFC from the newest edition, as the server would, and returns
// the ids of the records. An RFC may have ?en_fecha=AAAA-MM-DD behind it.
func ask(t *testing.T, data string, rfcs ...string) (ids []string) {
	t.Helper()
	org := cotejoJSON[accountReply](t, "accounts", "create", "ALFA", "--data", data).Orgs[0].ID
	cotejo(t, 0, "wallet", "credit", "--org", org, "--mxn", "500", "--reason", "prueba", "--data", data)
	key := cotejoJSON[keyReply](t, "keys", "create", "--org", org, "--mode", "live", "--data", data).Key

	n, err := openNode(t.Context(), configuration{values: map[string]string{"data": data}}, mustExist)
	if err != nil {
		t.Fatal(err)
	}
	live, err := snapshots.NewLive(n.sources)
	if err != nil {
		t.Fatal(err)
	}
	table, err := operation.NewTable(company.Operations(nil))
	if err != nil {
		t.Fatal(err)
	}
	at := now() // one moment, so that all actas say the same
	pipeline := &operation.Pipeline{
		Live: live, Sandbox: live, Ledger: n.ledger, Accounts: n.accounts, Now: func() time.Time { return at },
	}
	for _, rfc := range rfcs {
		rfc, day, past := strings.Cut(rfc, "?en_fecha=")
		args := []operation.Arg{{In: operation.InPath, Name: "rfc", Value: rfc}}
		if past {
			args = append(args, operation.Arg{In: operation.InQuery, Name: "en_fecha", Value: day})
		}
		resp, err := pipeline.Do(t.Context(), &operation.Request{
			Operation: table.Find("verificarEmpresa"), Key: []byte(key), Args: args,
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
		var body struct {
			ID string `json:"verification_id"`
		}
		if err := json.Unmarshal(resp.Body, &body); err != nil || body.ID == "" {
			t.Fatalf("respuesta sin id: %v, %s", err, resp.Body)
		}
		ids = append(ids, body.ID)
	}
	if err := live.Close(); err != nil {
		t.Fatal(err)
	}
	if err := n.close(); err != nil {
		t.Fatal(err)
	}
	return ids
}

// verify runs the command and returns its report, whatever it says.
func verify(t *testing.T, wantCode int, what, data string) (r verifyReply) {
	t.Helper()
	out := cotejo(t, wantCode, "verify", what, "--data", data, "--json")
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatalf("verify %s: %v\n%s", what, err, out)
	}
	return r
}

// flipIn changes the middle byte of a file that the pattern finds, and returns
// how to change it back and the file's name.
func flipIn(t *testing.T, data, pattern string) (name string, restore func()) {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(data, pattern))
	if err != nil || len(found) == 0 {
		t.Fatalf("%s: ningún archivo: %v", pattern, err)
	}
	path := found[len(found)-1]
	original, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	write := func(content []byte) {
		t.Helper()
		if err := os.Chmod(path, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	changed := slices.Clone(original)
	changed[len(changed)/2] ^= 1
	write(changed)
	return strings.TrimPrefix(path, filepath.Join(data, dirSources)+"/"), func() { write(original) }
}

// TestAnAlteredFileIsNamed flips one byte of each kind of published file.
func TestAnAlteredFileIsNamed(t *testing.T) {
	data, ids := answered(t, "EFO010101AA1")
	if r := verify(t, 0, ids[0], data); !r.OK || len(r.Findings) != 1 || r.Findings[0].Verdict != admin.Coincide {
		t.Fatalf("sin cambios: %+v", r)
	}
	if r := verify(t, 0, "all", data); !r.OK || r.Records != 1 || len(r.Findings) != 0 {
		t.Fatalf("sin cambios: %+v", r)
	}
	f := func(pattern string) {
		t.Helper()
		name, restore := flipIn(t, data, pattern)
		defer restore()
		one := verify(t, exitVerifyNo, ids[0], data)
		if one.OK || len(one.Findings) != 1 || one.Findings[0].Verdict != admin.SinArchivos || !strings.Contains(one.Findings[0].Detail, name) {
			t.Errorf("%s: verify ID = %+v", name, one)
		}
		all := verify(t, exitVerifyNo, "all", data)
		named := slices.ContainsFunc(all.Files, func(s string) bool { return strings.Contains(s, name) })
		if all.OK || !named || all.Records != 1 {
			t.Errorf("%s: verify all = %+v", name, all)
		}
	}
	entry := serving(t, data)
	f("fuentes/snapshots/sat_69b/" + entry.SHA256 + "/filas-*.sst")
	f("fuentes/snapshots/sat_69b/" + entry.SHA256 + "/oficial.zst")
	f("fuentes/snapshots/sat_69b/*/oficial.zst") // an older one, that its history is made from
	f("fuentes/" + entry.History.Path)
	f("fuentes/versions/2.json")
	f("fuentes/editions/2.json")
}

// serving is what the newest edition says of the list.
func serving(t *testing.T, data string) snapshots.EditionEntry {
	t.Helper()
	dir, err := openDataDir(data, mustExist)
	if err != nil {
		t.Fatal(err)
	}
	m, err := dir.sources.LatestEdition()
	if err != nil || len(m.Sources) != 1 {
		t.Fatalf("%+v: %v", m, err)
	}
	return m.Sources[0]
}

// TestAnswersAboutEarlierDaysAreVerified holds it while editions come and go, and
// that a flipped byte in the version of that day is found.
func TestAnswersAboutEarlierDaysAreVerified(t *testing.T) {
	inNovember(t)
	today := civil.Of(now()).String()
	data, ids := answered(t, "EFO010101AA1?en_fecha=2026-06-15", "EFO010101AA1?en_fecha="+today, "EFO010101AA1?en_fecha=1999-01-01")
	cotejo(t, 0, "ingest", "--file", "sat_69b="+stageFile(t, 2), "--data", data)
	if r := verify(t, 0, "all", data); !r.OK || r.Records != 3 || r.Coincide != 3 {
		t.Fatalf("all = %+v", r)
	}
	var older string // the rows of the first version
	rows, err := filepath.Glob(filepath.Join(data, "fuentes/snapshots/sat_69b/*/filas-1.sst"))
	if err != nil || len(rows) != 3 {
		t.Fatalf("%v, %v", rows, err)
	}
	dir, err := snapshots.OpenCatalogue(filepath.Join(data, dirSources))
	if err != nil {
		t.Fatal(err)
	}
	first, err := dir.Version(1)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		if strings.Contains(r, first.SHA256) {
			older = strings.TrimPrefix(r, data)
		}
	}
	_, restore := flipIn(t, data, older)
	defer restore()
	if r := verify(t, exitVerifyNo, ids[0], data); r.OK || r.Findings[0].Verdict != admin.SinArchivos {
		t.Fatalf("version of that day altered: %+v", r)
	}
}

// What was not computed again does not agree with anything: it is counted apart.
func TestRecordsOfOtherEnginesAreCountedApart(t *testing.T) {
	var r verifyReply
	for _, verdict := range []string{admin.Coincide, admin.NoRecalculado, admin.NoCoincide} {
		r.add(admin.Finding{Verdict: verdict}, false)
	}
	if r.Records != 3 || r.Coincide != 1 || r.Intact != 1 || len(r.Findings) != 1 {
		t.Fatalf("%+v", r)
	}
}

// TestAnswersAboutManyProceduresAreKept asks about an RFC whose rows do not all
// fit into an acta.
func TestAnswersAboutManyProceduresAreKept(t *testing.T) {
	inNovember(t)
	list := string(mirrorFile(t, 0))
	at := strings.Index(list, ",EFO010101AA1,")
	row := list[strings.LastIndex(list[:at], "\n")+1 : at+strings.Index(list[at:], "\n")+1]
	for i := range 60 {
		list += strings.ReplaceAll(row, "500-05-2026-", fmt.Sprintf("500-05-%d-", 3000+i))
	}
	file := t.TempDir() + "/lista.csv"
	if err := os.WriteFile(file, []byte(list), 0o600); err != nil {
		t.Fatal(err)
	}
	data := t.TempDir()
	cotejo(t, 0, "ingest", "--file", "sat_69b="+file, "--data", data)
	ask(t, data, "EFO010101AA1", "EFO010101AA1?en_fecha="+civil.Of(now()).String())
	if r := verify(t, 0, "all", data); !r.OK || r.Coincide != 2 {
		t.Fatalf("all = %+v", r)
	}
}

// TestADateSetBackAltersNothing corrects a date and sets it back: two editions
// then have one hash, and records of both agree with what is published.
func TestADateSetBackAltersNothing(t *testing.T) {
	data := t.TempDir()
	_, undated, _ := bytes.Cut(mirrorFile(t, 0), []byte("\r\n")) // without the note that dates it
	file := t.TempDir() + "/lista.csv"
	if err := os.WriteFile(file, undated, 0o600); err != nil {
		t.Fatal(err)
	}
	var ids, editions []string
	for _, corte := range []string{"2026-05-31", "2026-05-30", "2026-05-31"} {
		r := cotejoJSON[[]ingestReply](t, "ingest", "--file", "sat_69b="+file, "--corte", corte, "--data", data)
		editions = append(editions, r[0].Edition)
		ids = append(ids, ask(t, data, "EFO010101AA1")...)
	}
	if editions[0] != editions[2] || editions[0] == editions[1] {
		t.Fatalf("ediciones %v", editions)
	}
	for _, id := range ids {
		if r := verify(t, 0, id, data); !r.OK {
			t.Errorf("verify %s = %+v", id, r)
		}
	}
	if r := verify(t, 0, "all", data); !r.OK || r.Records != 3 {
		t.Errorf("verify all = %+v", r)
	}
}

// TestAMissingEditionIsSaid takes the edition's manifest away.
func TestAMissingEditionIsSaid(t *testing.T) {
	data, ids := answered(t, "EFO010101AA1")
	if err := os.Remove(data + "/fuentes/editions/2.json"); err != nil {
		t.Fatal(err)
	}
	if r := verify(t, exitVerifyNo, ids[0], data); r.Findings[0].Verdict != admin.SinEdicion {
		t.Errorf("verify ID = %+v", r)
	}
	if r := verify(t, exitVerifyNo, "all", data); r.Records != 1 || len(r.Findings) != 1 || r.Findings[0].Verdict != admin.SinEdicion {
		t.Errorf("verify all = %+v", r)
	}
}

// forgedLink makes the link that the ledger would have written with put, after
// docs/data-formats.md.
func forgedLink(t *testing.T, s store.Store, group store.Group, seq uint64, put store.Put) store.Put {
	t.Helper()
	key := func(seq uint64) []byte { return binary.BigEndian.AppendUint64([]byte{9: 0x01}, seq) }
	before, err := s.Reader(group).Get(key(seq - 1))
	if err != nil {
		t.Fatal(err)
	}
	batch := []byte{byte(group), 0, 0, 0, 1}
	batch = binary.BigEndian.AppendUint32(batch, uint32(len(put.Key)))
	batch = binary.BigEndian.AppendUint32(batch, uint32(len(put.Value)))
	batch = slices.Concat(batch, put.Key, put.Value, make([]byte, 4))
	digest := sha256.Sum256(batch)
	head := sha256.Sum256(binary.BigEndian.AppendUint64(slices.Concat(before[33:], digest[:]), seq))
	return store.Put{Key: key(seq), Value: slices.Concat([]byte{1}, digest[:], head[:])}
}

// TestAnAlteredRecordIsSaid changes bytes of what is stored of records, one at a
// time, as someone would who can write to the store: nothing of it may pass.
func TestAnAlteredRecordIsSaid(t *testing.T) {
	data, ids := answered(t, "EFO010101AA1", "ZZZ010101AA1")
	n, err := openNode(t.Context(), configuration{values: map[string]string{"data": data}}, mustExist)
	if err != nil {
		t.Fatal(err)
	}
	defer n.close()
	report := func(id string) *verifyReply {
		t.Helper()
		value, err := n.verify(t.Context(), json.RawMessage(`{"id":"`+id+`"}`), func(string) {})
		if err != nil {
			t.Fatalf("verify %s: %v", id, err)
		}
		return value.(*verifyReply)
	}
	stored, group := storedRecords(t, n.pebble)
	epoch, seq, err := n.store.Acquire(group) // from here on, the ledger only reads
	if err != nil {
		t.Fatal(err)
	}
	put := func(p store.Put) {
		t.Helper()
		seq++
		puts := []store.Put{p, forgedLink(t, n.pebble, group, seq, p)}
		if err := n.store.Commit(store.Batch{Group: group, Epoch: epoch, Seq: seq, Puts: puts}); err != nil {
			t.Fatal(err)
		}
	}
	verdicts := map[string]int{}
	for _, p := range stored {
		for i := 0; i < len(p.Value); i += 1 + len(p.Value)/200 {
			changed := bytes.Clone(p.Value)
			changed[i] ^= 1
			put(store.Put{Key: p.Key, Value: changed})
			said := 0
			for _, what := range append(ids, "all") {
				r := report(what)
				if !r.OK {
					said++
				}
				for _, f := range r.Findings {
					verdicts[f.Verdict]++
				}
			}
			if said == 0 && !unsaid(p, i) {
				t.Errorf("byte %d de %d: nadie lo nota: …%q…", i, len(p.Value), changed[max(0, i-30):min(len(changed), i+30)])
			}
		}
		put(p)
	}
	for _, verdict := range []string{admin.NoCoincide, admin.Ilegible} {
		if verdicts[verdict] == 0 {
			t.Errorf("ningún «%s» entre %v", verdict, verdicts)
		}
	}
	if r := report("all"); !r.OK || r.Records != 2 {
		t.Errorf("de vuelta: %+v", r)
	}

	// The exit code says it too.
	p := stored[0]
	changed := bytes.Clone(p.Value)
	changed[0] ^= 1
	put(store.Put{Key: p.Key, Value: changed})
	if err := n.close(); err != nil {
		t.Fatal(err)
	}
	verify(t, exitVerifyNo, "all", data)
	codes := 0
	for _, id := range ids {
		codes += run(t.Context(), []string{"verify", id, "--data", data}, io.Discard, io.Discard)
	}
	if codes != exitVerifyNo && codes != 2*exitVerifyNo {
		t.Errorf("verify ID termina con %d en total", codes)
	}
}

// unsaid tells the bytes that nothing else says: in a dictionary, the name of
// the operation, which no answer shows, and the time of the day of the acta that
// it ends with, which only the log of all actas will cover.
func unsaid(p store.Put, i int) bool {
	const clock = `"consultado":"2026-11-20T`
	at := bytes.LastIndex(p.Value, []byte(clock[:len(`"consultado":"`)]))
	if p.Key[9] != 0x13 || at < 0 {
		return false
	}
	from := at + len(clock)
	return i < 2+len("verificarEmpresa") || i >= from && i < from+len("15:04:05")
}

// storedRecords finds the values that hold answers: records, and the text that
// they are coded against.
func storedRecords(t *testing.T, s *store.Pebble) (found []store.Put, group store.Group) {
	t.Helper()
	for g := range store.Group(store.Groups) {
		err := s.Reader(g).Scan(nil, nil, func(k, v []byte) error {
			// Shard 1, account 8, space: 0x12 holds records, 0x13 dictionaries.
			if k[9] == 0x12 || k[9] == 0x13 {
				found, group = append(found, store.Put{Key: bytes.Clone(k), Value: bytes.Clone(v)}), g
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(found) != 3 {
		t.Fatalf("%d registros guardados", len(found))
	}
	return found, group
}

// TestRebuildPutsBackAndNames damages a file that can be made again and one
// that cannot.
func TestRebuildPutsBackAndNames(t *testing.T) {
	data := loadedData(t, 0)
	cotejo(t, 0, "ingest", "--file", "sat_69b="+stageFile(t, 1), "--data", data)
	entry := serving(t, data)
	rebuild := func(wantCode int) rebuildReply {
		t.Helper()
		var r []rebuildReply
		out := cotejo(t, wantCode, "snapshots", "rebuild", "--data", data, "--json")
		if err := json.Unmarshal([]byte(out), &r); err != nil || len(r) != 2 || r[0].Catalogue != dirSources {
			t.Fatalf("rebuild = %+v, %v\n%s", r, err, out)
		}
		return r[0]
	}
	if r := rebuild(0); r.Checked == 0 || len(r.Restored) != 0 || len(r.Differs) != 0 {
		t.Errorf("sin cambios: %+v", r)
	}
	name, _ := flipIn(t, data, "fuentes/snapshots/sat_69b/"+entry.SHA256+"/filas-*.sst")
	if r := rebuild(0); !slices.Contains(r.Restored, name) {
		t.Errorf("%s no se repuso: %+v", name, r)
	}
	verify(t, 0, "all", data)
	name, restore := flipIn(t, data, "fuentes/snapshots/sat_69b/"+entry.SHA256+"/oficial.zst")
	if r := rebuild(exitVerifyNo); len(r.Differs) == 0 || !strings.Contains(strings.Join(r.Differs, " "), name) {
		t.Errorf("%s no se nombra: %+v", name, r)
	}
	restore()
	rebuild(0)
}

// TestCheckOfArticle69 names what the lists say, and those that were not asked.
func TestCheckOfArticle69(t *testing.T) {
	config, stage := mirrorConfig(t)
	stage.Store(mirror.Stages - 1)
	data := newData(t)
	cotejo(t, 0, "ingest", "sat_art69_firmes", "sat_art69_exigibles", "--data", data, "--config", config)
	f := func(rfc, want string, args ...string) {
		t.Helper()
		out := cotejo(t, 0, append([]string{"check", rfc, "--data", data}, args...)...)
		if !strings.Contains(out, want) {
			t.Errorf("%s: falta %q:\n%s", rfc, want, out)
		}
	}
	f("CUE010101AA1", "  Artículo 69                   Aparece: Firmes (1)   CUENTOS Y NUBES SA DE CV\n                                Aparece: Exigibles (1)   CUENTOS")
	f("BOS010101AA1", "Aparece: Firmes (2)   BOSQUES EN EL AIRE")
	f("ZZZ010101AA1", "No aparece en las 2 listas consultadas (no es una aprobación)")
	f("ZZZ010101AA1", "Sin cargar (no equivale a «no aparece»): NO_LOCALIZADOS, SENTENCIAS,")
	if s := cotejoJSON[sourceReply](t, "sources", "show", "sat_art69_eliminados", "--data", data); s.Source != "sat_art69_eliminados" || s.State != "no_ofrecida" {
		t.Errorf("%+v", s)
	}
	f("CUE010101AA1", "  listas al 2020-01-01        Ninguna lista que consultar (no equivale a «no aparece»)", "--en-fecha", "2020-01-01")
}
