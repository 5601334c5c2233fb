package operation

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"cotejo/canon"
	"cotejo/ledger"
)

const (
	sha1st = "1111111111111111111111111111111111111111111111111111111111111111"
	sha2nd = "2222222222222222222222222222222222222222222222222222222222222222"
	shaEd  = "eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee"
	shaReg = "abababababababababababababababababababababababababababababababab"
)

// sample is a record whose resultado is given. Its acta names version 7 of s1 and
// 11 of s3, both with sha1st, and version 9 of s2 with sha2nd. Only the server of
// 7 told a date.
func sample(resultado string) *ledger.Record {
	return &ledger.Record{
		Service: "COMPANY",
		Registro: []byte(`{"edicion_sha256":"` + shaEd + `","entrada":{"rfc":"A\"resultado\":B"},"fecha":"2026-11-20",` +
			`"motor":"COMPANY/1","observado":null,"resultado":` + resultado + `}`),
		Acta: []byte(`{"consultado":"2026-11-20T10:15:00-06:00","engine_version":"0.9.0","registro_sha256":"` + shaReg + `","verification_id":"COM-20261120-0000beef",` +
			`"versiones":[{"descargada":"D1","id":7,"obtenida_de":"O1","publicada_en_reset":"P1","sha256":"` + sha1st + `","source":"s1","ultima_modificacion_servidor":"M1","url":"U1"},` +
			`{"descargada":"D2","id":9,"obtenida_de":"O2","publicada_en_reset":"P2","sha256":"` + sha2nd + `","source":"s2","url":"U2"},` +
			`{"descargada":"D3","id":11,"obtenida_de":"O3","publicada_en_reset":"P3","sha256":"` + sha1st + `","source":"s3","url":"U3"}]}`),
	}
}

const (
	head = `{"verification_id":"COM-20261120-0000beef","service":"COMPANY",`
	tail = `,"consultado":"2026-11-20T10:15:00-06:00","engine_version":"0.9.0","motor":"COMPANY/1","edicion_sha256":"` + shaEd + `","registro_sha256":"` + shaReg + `"`
	of7  = `,"source_version_id":7,"url":"U1","obtenida_de":"O1","publicada_en_reset":"P1","descargada":"D1","ultima_modificacion_servidor":"M1"`
	of9  = `,"source_version_id":9,"url":"U2","obtenida_de":"O2","publicada_en_reset":"P2","descargada":"D2","ultima_modificacion_servidor":null`
	of11 = `,"source_version_id":11,"url":"U3","obtenida_de":"O3","publicada_en_reset":"P3","descargada":"D3","ultima_modificacion_servidor":null`
)

func TestAnswer(t *testing.T) {
	f := func(resultado, want string) {
		t.Helper()
		got, err := AppendAnswer([]byte("kept"), sample(resultado))
		if err != nil {
			t.Fatalf("%s: %v", resultado, err)
		}
		if string(got) != "kept"+want {
			t.Fatalf("%s\n got %s\nwant kept%s", resultado, got, want)
		}
	}
	f(`{"rfc":"X"}`, head+`"rfc":"X"`+tail+`}`)
	f(`{}`, strings.TrimSuffix(head, ",")+tail+`}`)
	// Each version is completed wherever it stands, as often as it stands.
	f(`{"id":"s1","sha256":"`+sha1st+`","z":[{"id":"s2","n":3,"sha256":"`+sha2nd+`","x":"u"},{"corte":null,"id":"s1","sha256":"`+sha1st+`"}]}`,
		head+`"id":"s1","sha256":"`+sha1st+`"`+of7+`,"z":[{"id":"s2","n":3,"sha256":"`+sha2nd+`"`+of9+`,"x":"u"},{"corte":null,"id":"s1","sha256":"`+sha1st+`"`+of7+`}]`+tail+`}`)
	// Two lists of the same bytes each get their own version.
	f(`{"l":[{"id":"s1","sha256":"`+sha1st+`"},{"id":"s3","sha256":"`+sha1st+`"}]}`,
		head+`"l":[{"id":"s1","sha256":"`+sha1st+`"`+of7+`},{"id":"s3","sha256":"`+sha1st+`"`+of11+`}]`+tail+`}`)
	alone := func(members string) {
		t.Helper()
		f(`{`+members+`}`, head+members+tail+`}`)
	}
	// A hash of something that was not consulted is left alone, and one whose
	// source stands in another object.
	alone(`"a":{"id":"s1","sha256":"` + shaEd + `"},"b_sha256":"` + sha1st + `"`)
	alone(`"a":{"id":"s2","sha256":"` + sha1st + `"}`)
	alone(`"a":{"sha256":"` + sha1st + `"}`)
	alone(`"id":"s1","a":{"sha256":"` + sha1st + `"}`)
	alone(`"id":"s1","l":[],"sha256":"` + sha1st + `"`)
	alone(`"a":{"id":"s1"},"sha256":"` + sha1st + `"`)
	alone(`"l":[{"id":"s1"},{"sha256":"` + sha1st + `"}]`)
	alone(`"a":{"id":{"id":"s1"},"sha256":"` + sha1st + `"}`)
	alone(`"a":{"x":"id\":\"s1\",","sha256":"` + sha1st + `"}`)
	f(`{"a":{"id":"s1","sha256":null},"b":{"id":"s1","m":true,"n":-1.5e3,"o":"}","sha256":"`+sha1st+`"}}`,
		head+`"a":{"id":"s1","sha256":null},"b":{"id":"s1","m":true,"n":-1.5e3,"o":"}","sha256":"`+sha1st+`"`+of7+`}`+tail+`}`)

	r := sample(`{"rfc":"X"}`)
	r.Sandbox = true
	got, _ := AppendAnswer(nil, r)
	if want := head + `"rfc":"X"` + tail + `,"sandbox":true}`; string(got) != want {
		t.Fatalf("sandbox: got %s\nwant %s", got, want)
	}
}

// TestAnswerAboutAnEarlierDay splices in what was known then, and a version that
// was not the one in service.
func TestAnswerAboutAnEarlierDay(t *testing.T) {
	f := func(conocida string) {
		t.Helper()
		r := sample(`{"v":[{"id":"s2","sha256":"` + sha2nd + `"},{"id":"s2","sha256":"` + sha1st + `"}]}`)
		r.Acta = bytes.Replace(r.Acta, []byte(`{`), []byte(`{"conocida":`+conocida+`,`), 1)
		r.Acta = bytes.Replace(r.Acta, []byte(`{"descargada":"D3"`),
			[]byte(`{"descargada":"D4","id":4,"obtenida_de":"O4","sha256":"`+sha1st+`","source":"s2","url":"U4"},{"descargada":"D3"`), 1)
		want := head + `"v":[{"id":"s2","sha256":"` + sha2nd + `"` + of9 + `},{"id":"s2","sha256":"` + sha1st +
			`","source_version_id":4,"url":"U4","obtenida_de":"O4","publicada_en_reset":null,"descargada":"D4","ultima_modificacion_servidor":null}],"conocida":` + conocida + tail + `}`
		if got, err := AppendAnswer(nil, r); err != nil || string(got) != want {
			t.Errorf("%s: %v\n got %s\nwant %s", conocida, err, got, want)
		}
	}
	f(`{}`)
	f(`{"s1":null,"s2":{"edicion":3,"l":[{"x":"}{\"\\"}],"sha256":"` + sha1st + `"}}`)

	bad := func(conocida string) {
		t.Helper()
		r := sample(`{"rfc":"X"}`)
		r.Acta = bytes.Replace(r.Acta, []byte(`{`), []byte(`{"conocida":`+conocida+`,`), 1)
		if got, err := AppendAnswer(nil, r); !errors.Is(err, ErrRecord) {
			t.Errorf("%s: %s, %v", conocida, got, err)
		}
	}
	bad(`null`)
	bad(``)
	bad(`{"a":{}`)
	bad(`{"a":"}`)
	bad(`{}}`)
}

// Names in official lists are free text. None can pass for a version's hash.
func TestAnswerHostileText(t *testing.T) {
	f := func(text string) {
		t.Helper()
		value := string(canon.AppendString(nil, text))
		for _, resultado := range []string{
			`{"nombre":` + value + `}`, `{` + value + `:1}`, `{"l":[` + value + `,` + value + `]}`,
		} {
			got, err := AppendAnswer(nil, sample(resultado))
			if err != nil {
				t.Fatalf("%s: %v", resultado, err)
			}
			if !bytes.Contains(got, []byte(resultado[1:len(resultado)-1])) || bytes.Contains(got, []byte("source_version_id")) {
				t.Fatalf("%s was changed: %s", resultado, got)
			}
			if !json.Valid(got) {
				t.Fatalf("%s: not JSON: %s", resultado, got)
			}
		}
	}
	f(`","id":"s1","sha256":"` + sha1st + `"`)
	f(`"id":"s1`)
	f(`"sha256":"` + sha1st + `"`)
	f(`,"sha256":"` + sha1st)
	f(`{"sha256":"` + sha1st + `"}`)
	f(`x"sha256`)
	f(`,"sha256`)
	f(`\"sha256":"` + sha1st)
	f(`{"resultado":{}}`)
	f(`"resultado":`)
	f("\\")
	f("\u2028 Ñ & <script>")
}

func TestAnswerDamagedRecord(t *testing.T) {
	f := func(damage func(*ledger.Record)) {
		t.Helper()
		r := sample(`{"a":{"id":"s1","sha256":"` + sha1st + `"}}`)
		damage(r)
		if got, err := AppendAnswer(nil, r); !errors.Is(err, ErrRecord) {
			t.Fatalf("got %s, %v", got, err)
		}
	}
	f(func(r *ledger.Record) { r.Registro = nil })
	f(func(r *ledger.Record) { r.Registro = []byte(`{"edicion_sha256":"x"}`) })
	f(func(r *ledger.Record) { r.Registro = r.Registro[1:] })
	f(func(r *ledger.Record) { r.Acta = nil })
	f(func(r *ledger.Record) { r.Acta = r.Acta[:len(r.Acta)-3] })
	f(func(r *ledger.Record) { r.Acta = bytes.Replace(r.Acta, []byte(`"id":7`), []byte(`"id"`), 1) })
}

func FuzzAnswer(f *testing.F) {
	r := sample(`{"a":{"id":"s1","sha256":"` + sha1st + `"}}`)
	f.Add(r.Registro, r.Acta)
	f.Add([]byte(`{"edicion_sha256":"","motor":"","resultado":{"id":"","sha256":""}}`), []byte(`{"consultado":"","engine_version":"","registro_sha256":"","verification_id":"","versiones":[{]}`))
	f.Add([]byte(`{"edicion_sha256":"","motor":"","resultado":{}}`), []byte(`{"consultado":"\`))
	f.Add([]byte(`{"edicion_sha256":"","motor":"","resultado":{}}`), []byte(`{"conocida":{"a":"}"},"consultado":"","engine_version":"","registro_sha256":"","verification_id":"","versiones":[]}`))
	f.Fuzz(func(t *testing.T, registro, acta []byte) {
		// In canonical order no member of a registro follows resultado.
		var members map[string]json.RawMessage
		if canonical, err := canon.Transform(registro); err != nil || !bytes.Equal(canonical, registro) || json.Unmarshal(registro, &members) != nil {
			return
		}
		for name := range members {
			if name > "resultado" {
				return
			}
		}
		got, err := AppendAnswer(nil, &ledger.Record{Service: "COMPANY", Registro: registro, Acta: acta})
		if err == nil && json.Valid(acta) && !json.Valid(got) {
			t.Fatalf("not JSON: %s", got)
		}
	})
}

// TestAnswersAfterAModel: what was answered before changes no answer, however little
// two results differ.
func TestAnswersAfterAModel(t *testing.T) {
	any := rapid.SampledFrom([]string{"ab", "cd", `"c`, `\`, `\\`, `":`, `"id":`, `","`, "XAXX010101000", "XEXX010101000", ""})
	texts := map[string]*rapid.Generator[string]{
		"a": any, "first": any, "name": any, "x": rapid.SampledFrom([]string{"ab", "cd", `"c`}), "rfc": rapid.SampledFrom([]string{"XAXX010101000", "XEXX010101000"}),
		"id": rapid.SampledFrom([]string{"s1", "s2", "s3", "s4"}), "sha256": rapid.SampledFrom([]string{sha1st, sha2nd, shaEd}),
	}
	rapid.Check(t, func(t *rapid.T) {
		var kept splicer
		names := []string{"a", "first", "id", "sha256", "x", "name", "rfc"}
		text := map[string]string{}
		draw := func(name string) { text[name] = string(canon.AppendString(nil, texts[name].Draw(t, name))) }
		for _, name := range names {
			draw(name)
		}
		n := 1
		for range rapid.IntRange(2, 6).Draw(t, "answers") {
			if name := rapid.SampledFrom(append(names, "n")).Draw(t, "changed"); name == "n" {
				n = 3 - n
			} else {
				draw(name)
			}
			r := sample(fmt.Sprintf(`{"a":%s,"l":[%s,{"id":%s,"n":%d,"sha256":%s,"x":%s}],%s:1,"rfc":%s,"s":{"id":"s2","sha256":"%s"},"z":1}`,
				text["a"], text["first"], text["id"], n, text["sha256"], text["x"], text["name"], text["rfc"], sha2nd))
			got, err := kept.append(nil, r)
			if err != nil {
				t.Fatal(err)
			}
			var alone splicer
			want, err := alone.append(nil, r)
			if err != nil || string(got) != string(want) {
				t.Fatalf("%s\n got %s\nwant %s (%v)", r.Registro, got, want, err)
			}
		}
	})
}

func BenchmarkAppendAnswer(b *testing.B) {
	r := sample(`{"advertencia":"` + strings.Repeat("Hechos publicados, ", 20) + `","l":[{"id":"s1","n":1,"sha256":"` + sha1st + `"}],"` + strings.Repeat(`a":"b","`, 100) + `z":1}`)
	b.ReportAllocs()
	var dst []byte
	for b.Loop() {
		dst, _ = AppendAnswer(dst[:0], r)
	}
}
