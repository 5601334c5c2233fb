package main

import (
	"bytes"
	"go/parser"
	"go/token"
	"os"
	"strings"
	"testing"
	"testing/fstest"
)

func withoutLine(text []byte, n int) []byte {
	lines := bytes.SplitAfter(bytes.Clone(text), []byte("\n"))
	return bytes.Join(append(lines[:n:n], lines[n+1:]...), nil)
}

// TestWhatIsTakenAwayOrAddedIsNoticed alters whole files and lines and makes the
// manifest anew.
func TestWhatIsTakenAwayOrAddedIsNoticed(t *testing.T) {
	files := evidence(t)
	f := func(what, want string, changed fstest.MapFS) {
		t.Helper()
		r, err := verify(resealed(t, changed), options{})
		if err != nil || !strings.Contains(strings.Join(r.faults, "\n"), want) {
			t.Errorf("%s: %v, %q; want %q", what, err, r.faults, want)
		}
	}
	for path := range files {
		switch path {
		case manifestName:
		case "ancla.json":
			r, err := verify(resealed(t, with(files, path, nil)), options{})
			if err != nil || len(r.faults) > 0 || !strings.Contains(strings.Join(r.unchecked, "\n"), "no trae ninguna") {
				t.Errorf("without an anchor: %v, %+v", err, r)
			}
		default:
			f("without "+path, "", with(files, path, nil))
			if r, err := verify(resealed(t, with(files, path, nil)), options{}); err != nil || len(r.faults) == 0 {
				t.Errorf("without %s: %v, nothing found", path, err)
			}
		}
	}
	line := func(path string, change func([]byte) []byte) fstest.MapFS {
		return with(files, path, change(files[path].Data))
	}
	actas, chain := files["actas.jsonl"].Data, files["cadena.jsonl"].Data
	f("an acta less", "no tienen las mismas líneas", line("actas.jsonl", func(b []byte) []byte { return withoutLine(b, 1) }))
	f("an acta twice", "no tienen las mismas líneas", with(files, "actas.jsonl", append(bytes.Clone(actas), actas...)))
	f("two actas exchanged", "registro_sha256", line("actas.jsonl", func(b []byte) []byte {
		lines := bytes.SplitAfter(bytes.Clone(b), []byte("\n"))
		lines[0], lines[1] = lines[1], lines[0]
		return bytes.Join(lines, nil)
	}))
	f("an answer twice", "ya está en otra línea", with(with(files, "actas.jsonl", append(bytes.Clone(actas), actas...)),
		"registros.jsonl", bytes.Repeat(files["registros.jsonl"].Data, 2)))
	replaced := func(path, old, new string) fstest.MapFS {
		t.Helper()
		text := bytes.Replace(files[path].Data, []byte(old), []byte(new), 1)
		if bytes.Equal(text, files[path].Data) {
			t.Fatalf("%s does not have %s", path, old)
		}
		return with(files, path, text)
	}
	n := bytes.Count(actas, []byte("\n")) // the last answers are those of the order
	for i, text := range bytes.SplitAfter(actas, []byte("\n")) {
		if bytes.Contains(files["cargos.jsonl"].Data, text[bytes.Index(text, []byte(`COM-`)):][:21]) {
			n = i
			break
		}
	}
	f("an answer of an order less", "falta la respuesta COM-", with(with(files, "actas.jsonl", withoutLine(actas, n)),
		"registros.jsonl", withoutLine(files["registros.jsonl"].Data, n)))
	f("a charge less", "después de la", with(files, "cargos.jsonl", withoutLine(files["cargos.jsonl"].Data, 1)))
	f("the last charge less", "y sus cargos suman 4", with(files, "cargos.jsonl", withoutLine(files["cargos.jsonl"].Data, 4)))
	f("a charge twice", "ya está en otro cargo", with(files, "cargos.jsonl", append(bytes.Clone(files["cargos.jsonl"].Data), files["cargos.jsonl"].Data...)))
	f("an order less", "lotes.jsonl no lo tiene", with(files, "lotes.jsonl", []byte{}))
	f("a wrong tier", "desde la 4 son 800 cada una", replaced("cargos.jsonl", `{"centavos":800,"desde":4,"hasta":4,`, `{"centavos":500,"desde":4,"hasta":4,`))
	f("a wrong unit price", "desde la 2 son 1200 cada una", replaced("cargos.jsonl", `"precio_unitario":1200`, `"precio_unitario":1100`))
	f("another price", "desde la 2 son 1100 cada una", replaced("lotes.jsonl", `{"centavos":1200,"desde":1}`, `{"centavos":1100,"desde":1}`))
	f("another step", "desde la 3 son 1200 cada una", replaced("lotes.jsonl", `"desde":3}`, `"desde":4}`))
	f("a link less in the middle", "después del lote", with(files, "cadena.jsonl", withoutLine(chain, bytes.Count(chain, []byte("\n"))-3)))
	f("the last link gone", "termina en el lote", with(files, "cadena.jsonl", withoutLine(chain, bytes.Count(chain, []byte("\n"))-1)))
	f("a file of nobody", "no es el nombre de un manifiesto", with(files, "versiones/nota.txt", []byte("x\n")))
	f("a stranger's manifest", "manifiesto_sha256", with(files, "versiones/9.json", []byte("{}\n")))

	r, err := verify(with(files, "otro", []byte("x")), options{})
	if err != nil || len(r.faults) != 1 || r.faults[0] != "sobra otro" {
		t.Errorf("a file that the manifest lacks: %v, %q", err, r.faults)
	}
	if _, err := verify(with(files, manifestName, nil), options{}); err == nil {
		t.Error("a folder without a manifest is looked at")
	}
}

// TestOnlyAnEarlierExportShowsAnAnswerThatIsGone takes one answer away, whole.
func TestOnlyAnEarlierExportShowsAnAnswerThatIsGone(t *testing.T) {
	files := evidence(t)
	less := resealed(t, with(with(files, "actas.jsonl", withoutLine(files["actas.jsonl"].Data, 2)),
		"registros.jsonl", withoutLine(files["registros.jsonl"].Data, 2)))
	if !accepted(t, less, options{}) {
		t.Error("an answer that is gone is noticed without an earlier export: mend limits")
	}
	if accepted(t, less, options{before: files}) {
		t.Error("an answer that is gone is not noticed beside an earlier export")
	}
	if !accepted(t, files, options{before: less}) {
		t.Error("an answer that came later is refused")
	}
	damaged := with(files, "actas.jsonl", files["registros.jsonl"].Data)
	if accepted(t, files, options{before: damaged}) {
		t.Error("a damaged earlier export is believed")
	}
	if !accepted(t, files, options{anchor: files["ancla.json"].Data}) {
		t.Error("its own anchor is refused")
	}
	if accepted(t, files, options{anchor: []byte("{}\n")}) {
		t.Error("an anchor that is none is believed")
	}
}

// TestCanonical holds the examples of RFC 8785 and what must not pass.
func TestCanonical(t *testing.T) {
	f := func(text string, want bool) {
		t.Helper()
		if err := canonical([]byte(text)); (err == nil) != want {
			t.Errorf("%s: %v", text, err)
		}
	}
	f(`{}`, true)
	f(`[56,{"1":[],"10":null,"d":true}]`, true)
	f(`{"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27]}`, true)
	f(`{"a":"\"\\\b\f\n\r\t\u001f`+"\u2028é€😀"+`"}`, true)
	f("{\"\U0001F600\":1,\"\uFB33\":2}", true) // by UTF-16, not by code point
	f("{\"a\uFB33\":1,\"a\U0001F600\":1}", false)
	f("{\"a\U0001F600\":1,\"a\uFB33\":1}", true)
	f("{\"\u0391\":1,\"\u0392\":1,\"\u0392b\":1}", true)
	f("{\"\uFB33\":2,\"\U0001F600\":1}", false)
	for _, text := range []string{
		``, `{`, `{"b":1,"a":2}`, `{"a":1,"a":1}`, `{ }`, `[1.0]`, `[1e2]`, `[-0]`, `[01]`, `["\u00e9"]`, `["\/"]`, `["\u001F"]`,
		`[1]x`, `[1] `, "[\"\xff\"]", `["\ud800"]`, `[1E400]`,
	} {
		f(text, false)
	}
}

// TestNothingOfTheProgramIsImported keeps the second verifier a second one: the
// standard library only.
func TestNothingOfTheProgramIsImported(t *testing.T) {
	names, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	read := 0
	for _, e := range names {
		if !strings.HasSuffix(e.Name(), ".go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), e.Name(), nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		read++
		for _, spec := range file.Imports {
			if first, _, _ := strings.Cut(strings.Trim(spec.Path.Value, `"`), "/"); strings.Contains(first, ".") || first == "cotejo" {
				t.Errorf("%s imports %s", e.Name(), spec.Path.Value)
			}
		}
	}
	if text, err := os.ReadFile("go.mod"); err != nil || strings.Contains(string(text), "require") || read < 8 {
		t.Errorf("go.mod %v: %s; %d files", err, text, read)
	}
}

// TestExitCodes runs the command.
func TestExitCodes(t *testing.T) {
	f := func(want int, said string, args ...string) {
		t.Helper()
		var out, errOut bytes.Buffer
		if code := run(args, &out, &errOut); code != want || !strings.Contains(out.String()+errOut.String(), said) {
			t.Errorf("%v: %d\n%s%s", args, code, &out, &errOut)
		}
	}
	const dir = "testdata/evidencia"
	f(0, "COINCIDE: nada", dir)
	f(0, "COINCIDE: nada", dir, "-ancla", dir+"/ancla.json")
	f(0, "COINCIDE: nada", "-anterior", dir, dir)
	f(exitDiffers, "NO COINCIDE", dir, "-ancla", dir+"/actas.jsonl")
	f(exitUsage, "uso:")
	f(exitUsage, "uso:", dir, dir)
	f(exitUsage, "falta MANIFIESTO.json", t.TempDir())
	f(exitIO, "no such file", dir, "-ancla", dir+"/nada")
}
