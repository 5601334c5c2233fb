package api

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"cotejo/accounts"
	"cotejo/operation"
	"cotejo/store"
)

// public are the operations whose path names nothing that an organization owns: what it
// names is the same for everybody. Every other operation with a parameter in its path
// stands in owned.
var public = []string{
	"verificarEmpresa", "listarContratos",
	"validarClabe", "validarRfc", "validarCurp", "validarNss",
	"consultarBanco", "consultarClaveSAT", "consultarTelefono",
	"descargarFuente", "leerEdicion",
}

// owned are the operations whose path names something that belongs to one organization.
var owned = map[string]struct {
	// make creates one with the key of a name and returns its path.
	make func(f *fixture, key string) string
	// absent are paths to what does not exist, as well-formed as those of make.
	absent []string
	body   []byte // of an operation that reads one
}{
	"leerVerificacion": {
		make: func(f *fixture, key string) string {
			id, _ := walk(f.get("/v1/empresa/EFO010101AA1", key).body, ".verification_id")
			return "/v1/verificaciones/" + id.(string)
		},
		absent: []string{"/v1/verificaciones/COM-20261120-00000000", "/v1/verificaciones/ZZZ-20261120-ffffffff", "/v1/verificaciones/COM-20200101-12345678"},
	},
	"leerLote": {
		make:   func(f *fixture, key string) string { return "/v1/empresa/lotes/" + list(f, key) },
		absent: []string{"/v1/empresa/lotes/LOT-20261120-00000000", "/v1/empresa/lotes/COM-20261120-ffffffff", "/v1/empresa/lotes/LOT"},
	},
	"leerResultadosDeLote": {
		make:   func(f *fixture, key string) string { return "/v1/empresa/lotes/" + list(f, key) + "/resultados" },
		absent: []string{"/v1/empresa/lotes/LOT-20261120-00000000/resultados", "/v1/empresa/lotes/COM-20261120-ffffffff/resultados", "/v1/empresa/lotes/LOT/resultados"},
	},
}

// list sends a list and returns its id.
func list(f *fixture, key string) string {
	id, _ := walk(f.sendBody("POST", "/v1/empresa/lote", []byte(`["EFO010101AA1"]`), f.keyHeader(key)...).body, ".lote_id")
	return id.(string)
}

// TestEveryPathIsIsolatedOrPublic fails for an operation that is in neither list.
func TestEveryPathIsIsolatedOrPublic(t *testing.T) {
	var named []string
	for _, op := range table(t) {
		if !slices.ContainsFunc(op.Params, func(p operation.Param) bool { return p.In == operation.InPath }) {
			continue
		}
		named = append(named, op.ID)
		if _, is := owned[op.ID]; is == slices.Contains(public, op.ID) {
			t.Errorf("%s %s (%s) must stand in public or in owned: can another organization ask for what its path names?", op.Method, op.Path, op.ID)
		}
	}
	for _, id := range append(slices.Collect(maps.Keys(owned)), public...) {
		if !slices.Contains(named, id) {
			t.Errorf("%s is listed and no operation with a parameter in its path", id)
		}
	}
}

// TestIsolation asks for everything that an organization owns with the keys of those it
// does not belong to: another account's, the sister's in the same account, and those
// across the line between live and test. Each gets, but for the request id, the answer
// to what does not exist, and nothing is written.
func TestIsolation(t *testing.T) {
	f := newFixture(t)
	f.loadStage(0)
	f.key("sister_twin", accounts.KeyRequest{Org: f.orgs["sister"].ID, Mode: accounts.Test})
	keys := []string{"live", "twin", "sister", "sister_twin", "other", "test"}
	for _, op := range f.table {
		resource, ok := owned[op.ID]
		if !ok {
			continue
		}
		ask := func(path, key string) answer { return f.sendBody(op.Method, path, resource.body, f.keyHeader(key)...) }
		for _, owner := range keys {
			if owner == "sister" || owner == "sister_twin" {
				must(f.accounts.Credit(t.Context(), f.orgs["sister"].ID, 12_00, "prueba")) // the wallet is the account's
			}
			path := resource.make(f, owner)
			if strings.Contains(path, "{") || !strings.HasPrefix(path, op.Path[:strings.IndexByte(op.Path, '{')]) {
				t.Fatalf("%s: %s is no path of %s", op.ID, path, op.Path)
			}
			written := f.written()
			for _, stranger := range keys {
				if stranger == owner {
					continue
				}
				foreign := ask(path, stranger)
				for _, nothing := range resource.absent {
					sameRefusal(t, op.ID+": "+owner+"'s, asked for by "+stranger, foreign, ask(nothing, stranger))
				}
			}
			if now := f.written(); now != written {
				t.Errorf("%s: what was refused wrote %d times", op.ID, now-written)
			}
			if own := ask(path, owner); own.status != 200 {
				t.Errorf("%s: %s gets %d for its own: %s", op.ID, owner, own.status, own.body)
			}
		}
	}
}

var requestID = regexp.MustCompile(`"request_id":"[^"]+"`)

// sameRefusal holds that two answers are one 404, to the byte.
func sameRefusal(t *testing.T, what string, foreign, absent answer) {
	t.Helper()
	plain := func(a answer) ([]byte, http.Header) {
		h := a.header.Clone()
		for _, name := range []string{"X-Request-Id", "Date", "RateLimit"} {
			if h.Get(name) != "" {
				h.Set(name, "-")
			}
		}
		return requestID.ReplaceAll(a.body, []byte(`"request_id":"-"`)), h
	}
	body, header := plain(foreign)
	wantBody, wantHeader := plain(absent)
	if foreign.status != 404 || absent.status != 404 || !bytes.Equal(body, wantBody) || !reflect.DeepEqual(header, wantHeader) {
		t.Errorf("%s:\n%d %s\n%v\nwhat does not exist:\n%d %s\n%v", what, foreign.status, body, header, absent.status, wantBody, wantHeader)
	}
}

// TestRegistrationsAreIsolated: another registration key finds no registration, whether
// it waits or was confirmed, with the right code or a wrong one, and counts no try.
func TestRegistrationsAreIsolated(t *testing.T) {
	f := newFixture(t)
	f.registrar("ajena", accounts.RegistrationKeySpec{Name: "Ajena"})
	confirm := func(id, code, key string) answer {
		body := must(json.Marshal(map[string]any{"registro_id": id, "codigo": code}))
		return f.sendBody("POST", "/v1/registro/confirmar", body, f.keyHeader(key)...)
	}
	v, _ := walk(f.sendBody("POST", "/v1/registro", registrationBody("ana@empresa.mx"), f.keyHeader("registro")...).body, ".registro_id")
	id, code := v.(string), f.code()
	strange := func(what string) {
		t.Helper()
		written := f.written()
		for _, try := range []string{code, "0000-0000"} {
			sameRefusal(t, what, confirm(id, try, "ajena"), confirm("reg_0000000000000", try, "ajena"))
		}
		if now := f.written(); now != written {
			t.Errorf("%s: what was refused wrote %d times", what, now-written)
		}
	}
	strange("waiting")
	if own := confirm(id, code, "registro"); own.status != 200 {
		t.Fatalf("%d %s", own.status, own.body)
	}
	strange("confirmed")
}

// written counts the batches that the accounts ever wrote.
func (f *fixture) written() (n uint64) {
	f.t.Helper()
	for g := range store.Group(store.Groups + 1) {
		v := must(f.store.View(g))
		n += v.Seq()
		if err := v.Close(); err != nil {
			f.t.Error(err)
		}
	}
	return n
}

// TestTheSandboxIsAnotherOrganization: what a test key leaves is its twin's.
func TestTheSandboxIsAnotherOrganization(t *testing.T) {
	f := newFixture(t)
	f.loadStage(0)
	live, twin := f.orgs["live"].ID, f.orgs["live"].ID.Twin()
	for key, want := range map[string]uint64{"live": uint64(live), "twin": uint64(twin)} {
		text, _ := walk(f.get("/v1/empresa/EFO010101AA1", key).body, ".verification_id")
		id, ok := f.pipeline.Ledger.ParseID(text.(string))
		r, err := f.pipeline.Ledger.Lookup(id)
		if !ok || err != nil || uint64(r.Org) != want || r.Sandbox != (key == "twin") {
			t.Errorf("%s: the record is of organization %d, sandbox %v, %v; want %d", key, r.Org, r.Sandbox, err, want)
		}
	}
}
