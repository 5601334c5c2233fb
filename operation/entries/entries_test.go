package entries

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

var spec = Spec{Name: "rfc", List: "rfcs", Max: 5}

// read is what Read gives, an entry as line:value, and its error.
func read(f Format, body string) (list string, unknown []string, err error) {
	var all []string
	unknown, err = Read(f, []byte(body), spec, func(line int, value []byte) error {
		all = append(all, fmt.Sprintf("%d:%s", line, value))
		return nil
	})
	return strings.Join(all, " "), unknown, err
}

func TestLists(t *testing.T) {
	f := func(format Format, body, want string) {
		t.Helper()
		if got, _, err := read(format, body); err != nil || got != want {
			t.Errorf("%.60q: %q, %v; want %q", body, got, err, want)
		}
	}
	f(JSON, `["A","B"]`, "1:A 2:B")
	f(JSON, " [ \"A\" ,\n\"\\u00d1\" , \"\" ] ", "1:A 2:Ñ 3:")
	f(JSON, `{"rfcs":["A","B"]}`, "1:A 2:B")
	f(JSON, `[]`, "")
	f(NDJSON, "\"A\"\n\n{\"rfc\":\"B\",\"otro\":[1]}\r\n\"\\u00d1\"", "1:A 3:B 4:Ñ")
	f(NDJSON, "", "")

	f(CSV, "A\nB\n", "1:A 2:B")
	f(CSV, "\ufeffRFC\r\nA\r\n\r\nB", "2:A 4:B")
	f(CSV, "nombre;Rfc;total\n\"Uno; SA\nde CV\";A;1\nDos;\"B\";2\n", "2:A 4:B")
	f(CSV, "x\trfc\n1\tA\n2\n", "2:A 3:") // the second has no such cell
	f(CSV, "A,rfc de otro\nB,x\n", "1:A 2:B")
	f(CSV, "\n\n;;\nrfc;n\nA;1\n;;\n;2\n", "5:A 7:")
	f(CSV, "\"A\"\"B\"\nC\rD\n", "1:A\"B 2:C 3:D")
	f(CSV, "rfc\n\xd1AA\n", "2:ÑAA")
	f(CSV, "", "")
	f(CSV, "\r\n \r\n", "")
}

func TestRefused(t *testing.T) {
	f := func(format Format, body string, kind Kind, line int, says string) {
		t.Helper()
		_, _, err := read(format, body)
		var refused *Error
		if !errors.As(err, &refused) || refused.Kind != kind || refused.Line != line || !strings.Contains(refused.Msg, says) {
			t.Errorf("%.60q: %#v; want kind %d, line %d, %q", body, err, kind, line, says)
		}
	}
	f(JSON, "", Shape, 0, "Falta el cuerpo")
	f(JSON, strings.Repeat(" ", 1<<20), Shape, 0, "Falta el cuerpo")
	f(JSON, `"A"`, Shape, 0, "no es una lista")
	f(JSON, `{"rfc":["A"]}`, Shape, 0, "Falta «rfcs»")
	f(JSON, `{"rfcs":"A"}`, Shape, 0, "debe ser una lista")
	f(JSON, `{"rfcs":[],"rfcs":[]}`, Syntax, 0, "más de una vez")
	f(JSON, `["A",1]`, Shape, 2, "elemento 2")
	f(JSON, `["A",null]`, Shape, 2, "elemento 2")
	f(JSON, `["A",["B"]]`, Shape, 2, "elemento 2")
	f(JSON, strings.Repeat("[", 1<<20), Shape, 1, "elemento 1")
	f(JSON, `{"a":`+strings.Repeat("[", 1<<20), Syntax, 0, "16 niveles")
	f(JSON, `["A"`, Syntax, 0, "JSON válido")
	f(JSON, `["A" "B"]`, Syntax, 0, "JSON válido")
	f(JSON, `["A"]]`, Syntax, 0, "algo después")
	f(JSON, `["A"] ["B"]`, Syntax, 0, "algo después")
	f(JSON, "[\"\xd1\"]", Syntax, 0, "UTF-8")
	f(JSON, `["1","2","3","4","5","6"]`, TooLong, 6, "más de 5")
	f(NDJSON, "\"A\"\nB\n", Syntax, 2, "línea 2")
	f(NDJSON, "\"A\"\n{\"x\":\"B\"}\n", Shape, 2, "línea 2")
	f(NDJSON, "{\"rfc\":null}", Shape, 1, "línea 1")
	f(NDJSON, "7", Shape, 1, "línea 1")
	f(NDJSON, "\""+strings.Repeat("A", 1<<20)+"\"", Shape, 1, "bytes")
	f(NDJSON, strings.Repeat("\"A\"\n", 6), TooLong, 6, "más de 5")
	f(CSV, "rfc\n\"A\n", Syntax, 2, "comillas")
	f(CSV, "rfc\n\""+strings.Repeat("A", 1<<20), Shape, 2, "comillas")
	f(CSV, "rfc\n"+strings.Repeat("A", 1<<20), Shape, 2, "bytes")
	f(CSV, "rfc\nA\n"+strings.Repeat(",", 1<<20), Shape, 3, "1000 columnas")
	f(CSV, "A\nB\x00\n", Syntax, 2, "byte nulo")
	f(CSV, "\xff\xfeA\x00", Syntax, 0, "UTF-16")
	f(CSV, strings.Repeat("A\n", 6), TooLong, 6, "más de 5")
}

func TestUnknownMembers(t *testing.T) {
	got, unknown, err := read(JSON, `{"x":{"rfcs":["Z"]},"rfcs":["A"],"y":null,"x":1}`)
	if err != nil || got != "1:A" || fmt.Sprint(unknown) != "[x y]" {
		t.Errorf("%q, %v, %v", got, unknown, err)
	}
	if _, unknown, _ := read(JSON, `{`+strings.Repeat(`"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1,"h":1,"i":1,"j":1,`, 9)+`"rfcs":[]}`); len(unknown) != maxUnknown {
		t.Errorf("%d names", len(unknown))
	}
}

// TestReadEndsWithItsReader: the error of fn ends the reading and comes back.
func TestReadEndsWithItsReader(t *testing.T) {
	stop := errors.New("stop")
	for f, body := range map[Format]string{JSON: `["A","B"]`, NDJSON: "\"A\"\n\"B\"", CSV: "A\nB"} {
		calls := 0
		_, err := Read(f, []byte(body), spec, func(int, []byte) error { calls++; return stop })
		if !errors.Is(err, stop) || calls != 1 {
			t.Errorf("format %d: %v after %d", f, err, calls)
		}
	}
}

// FuzzRead: any body ends, with entries in the order of their lines or with an error
// that says what to do.
func FuzzRead(f *testing.F) {
	for _, body := range []string{`["A","B"]`, `{"rfcs":["A"],"x":[{}]}`, "\"A\"\n{\"rfc\":\"B\"}", "rfc;x\n\"A\n\";1", "\ufeffA,\xd1\r\n"} {
		for format := JSON; format <= CSV; format++ {
			f.Add(byte(format), []byte(body))
		}
	}
	f.Fuzz(func(t *testing.T, format byte, body []byte) {
		last, count := 0, 0
		_, err := Read(Format(1+format%3), body, spec, func(line int, value []byte) error {
			if line < last || line == 0 || len(value) > len(body)*3 {
				t.Fatalf("line %d after %d, %d bytes", line, last, len(value))
			}
			last = line
			count++
			return nil
		})
		var refused *Error
		if err != nil && (!errors.As(err, &refused) || refused.Msg == "" || refused.Kind == 0) {
			t.Fatalf("%v", err)
		}
		if count > spec.Max {
			t.Fatalf("%d entries", count)
		}
	})
}
