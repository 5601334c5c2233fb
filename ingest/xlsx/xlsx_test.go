package xlsx_test

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"cotejo/ingest/xlsx"
	"cotejo/testdata/mirror"
)

func rowsOf(content []byte) (rows [][]string, numbers []int, err error) {
	err = xlsx.Read(content, func(number int, cells []string) error {
		rows, numbers = append(rows, slices.Clone(cells)), append(numbers, number)
		return nil
	})
	return rows, numbers, err
}

func TestRead(t *testing.T) {
	f := func(sheet, shared string, want ...string) {
		t.Helper()
		rows, numbers, err := rowsOf(mirror.WorkbookOf(sheet, shared))
		var got []string
		for i := range rows {
			got = append(got, fmt.Sprintf("%d %q", numbers[i], rows[i]))
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v, %v; want %v", sheet, got, err, want)
		}
	}
	f(`<row r="1"><c r="A1" t="s"><v>1</v></c><c r="C1" t="s"><v>0</v></c></row><row r="4"><c r="B4"><v>46074</v></c></row><row r="5"/>`,
		`<si><t>uno</t></si><si><r><t xml:space="preserve"> do</t></r><r><t>s</t></r><rPh sb="0" eb="1"><t>dicho</t></rPh></si>`,
		`1 [" dos" "" "uno"]`, `4 ["" "46074"]`)
	f(`<row><c t="inlineStr"><is><t>a</t></is></c><c t="str"><f>1+1</f><v>2</v></c><c t="b"><v>1</v></c><c><v></v></c></row>`, ``, `1 ["a" "2" "1" ""]`)
	f(``, ``)
	if rows, _, err := rowsOf(mirror.Workbook([][]string{{"a", "", "b"}, {"", "a\tñ <&>"}})); err != nil || fmt.Sprintf("%q", rows) != `[["a" "" "b"] ["" "a\tñ <&>"]]` {
		t.Errorf("%q %v", rows, err)
	}
	stop := errors.New("stop")
	if err := xlsx.Read(mirror.Workbook([][]string{{"a"}, {"b"}}), func(int, []string) error { return stop }); err != stop {
		t.Error(err)
	}
}

// packed makes an archive of these parts.
func packed(parts map[string]string) []byte {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for name, content := range parts {
		w, err := z.Create(name)
		if err == nil {
			_, err = w.Write([]byte(content))
		}
		if err != nil {
			panic(err)
		}
	}
	if err := z.Close(); err != nil {
		panic(err)
	}
	return b.Bytes()
}

// TestHostile: whatever a workbook claims, it is refused with a reason, within memory
// that the limits explain.
func TestHostile(t *testing.T) {
	f := func(name string, content []byte, says string) {
		t.Helper()
		runtime.GC()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, _, err := rowsOf(content)
		runtime.ReadMemStats(&after)
		bad, ok := errors.AsType[*xlsx.Error](err)
		if !ok || !strings.Contains(bad.Reason, says) {
			t.Errorf("%s: %v; want %q", name, err, says)
		}
		if grown := int64(after.TotalAlloc-before.TotalAlloc) >> 20; grown > 400 {
			t.Errorf("%s: allocates %d MiB for %d bytes", name, grown, len(content))
		}
	}
	si := func(n int) string { return strings.Repeat(`<si/>`, n) }
	good := mirror.Workbook([][]string{{"a"}})
	f("no archive", []byte("RFC,Nombre"), "no es un libro de Excel")
	f("cut", good[:len(good)-30], "cortado")
	f("half", good[:len(good)/2], "cortado")
	f("other archive", packed(map[string]string{"a.txt": "x"}), "le falta xl/workbook.xml")
	f("no sheet", packed(map[string]string{"xl/workbook.xml": "<workbook/>"}), "ninguna hoja")
	f("outside", packed(map[string]string{
		"xl/workbook.xml":            `<workbook xmlns:r="u"><sheets><sheet r:id="1"/></sheets></workbook>`,
		"xl/_rels/workbook.xml.rels": `<Relationships><Relationship Id="1" Target="../../../etc/passwd"/></Relationships>`,
	}), "ninguna hoja")
	f("two of a name", packed(map[string]string{"xl/workbook.xml": "<a/>", "XL/workbook.xml": "<a/>"}), "dos partes")
	many := map[string]string{}
	for i := range 1001 {
		many[fmt.Sprint(i)] = ""
	}
	f("many parts", packed(many), "1001 partes")
	f("bomb", mirror.WorkbookOf(strings.Repeat(" ", 64<<20), ""), "se admiten")
	f("document type", packed(map[string]string{"xl/workbook.xml": `<!DOCTYPE a [<!ENTITY x "y">]><a>&x;</a>`}), "parte workbook.xml")
	f("strings", mirror.WorkbookOf("", si(600_000)), "500000 textos")
	f("one long string", mirror.WorkbookOf("", "<si><t>"+strings.Repeat("a", 70_000)+"</t></si>"), "65536 bytes")
	f("a string often", mirror.WorkbookOf(strings.Repeat(`<row><c t="s"><v>0</v></c></row>`, 20_000), "<si><t>"+strings.Repeat("a", 60_000)+"</t></si>"), "los textos de la hoja pasan")
	f("no such string", mirror.WorkbookOf(`<row><c t="s"><v>7</v></c></row>`, si(1)), "remite a un texto")
	f("last column", mirror.WorkbookOf(strings.Repeat(`<row><c r="XFD1"/></row>`, 20_000), ""), "256 columnas")
	f("a million columns", mirror.WorkbookOf(`<row>`+strings.Repeat(`<c/>`, 1<<20)+`</row>`, ""), "256 columnas")
	f("cells backwards", mirror.WorkbookOf(`<row><c r="B1"/><c r="A1"/></row>`, ""), "no están en orden")
	f("no reference", mirror.WorkbookOf(`<row><c r="1A"/></row>`, ""), "no están en orden")
	f("rows backwards", mirror.WorkbookOf(`<row r="2"/><row r="1"/>`, ""), "no están en orden")
	f("a row too far", mirror.WorkbookOf(`<row r="99999999999"><c/></row>`, ""), "no están en orden")
	f("rows", mirror.WorkbookOf(strings.Repeat(`<row><c/></row>`, 100_001), ""), "100000 renglones")
	f("deep", mirror.WorkbookOf(strings.Repeat(`<a>`, 100), ""), "parte sheet1.xml")
}

// FuzzRead: whatever the sheet and its strings, reading ends, with rows that are no
// wider than admitted or with a reason.
func FuzzRead(f *testing.F) {
	f.Add(`<row r="1"><c r="A1" t="s"><v>0</v></c></row>`, `<si><t>a</t></si>`)
	f.Add(`<row><c t="inlineStr"><is><t>a</t></is></c></row></sheetData><x>`, `<si>`)
	f.Add(`<row><c><c r="ZZ9"/><v>1</v></row></row>`, `</sst><sst>`)
	f.Fuzz(func(t *testing.T, sheet, shared string) {
		rows, _, err := rowsOf(mirror.WorkbookOf(sheet, shared))
		if _, refused := errors.AsType[*xlsx.Error](err); err != nil && !refused {
			t.Fatal(err)
		}
		for _, r := range rows {
			if len(r) == 0 || len(r) > 256 {
				t.Fatalf("%d cells", len(r))
			}
		}
	})
}

// FuzzArchive: whatever the bytes.
func FuzzArchive(f *testing.F) {
	f.Add(mirror.Workbook([][]string{{"a", "b"}, {"c"}}))
	f.Fuzz(func(t *testing.T, content []byte) {
		if _, _, err := rowsOf(content); err != nil {
			if _, refused := errors.AsType[*xlsx.Error](err); !refused {
				t.Fatal(err)
			}
		}
	})
}
