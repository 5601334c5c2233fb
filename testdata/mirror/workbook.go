package mirror

import (
	"archive/zip"
	"bytes"
	"encoding/xml"
	"fmt"
	"strings"
)

// Workbook makes an Excel workbook with one sheet of texts: those of more than one cell
// are shared, as Excel does, and empty cells are left out. The same rows give the same
// bytes.
func Workbook(rows [][]string) []byte {
	at := map[string]int{}
	var shared []string
	var sheet strings.Builder
	for i, row := range rows {
		fmt.Fprintf(&sheet, `<row r="%d">`, i+1)
		for j, text := range row {
			if text == "" {
				continue
			}
			n, known := at[text]
			if !known {
				n = len(shared)
				at[text], shared = n, append(shared, text)
			}
			fmt.Fprintf(&sheet, `<c r="%c%d" t="s"><v>%d</v></c>`, 'A'+j, i+1, n)
		}
		sheet.WriteString(`</row>`)
	}
	var texts strings.Builder
	for _, text := range shared {
		texts.WriteString(`<si><t xml:space="preserve">`)
		_ = xml.EscapeText(&texts, []byte(text)) // of a Builder: no error
		texts.WriteString(`</t></si>`)
	}
	return WorkbookOf(sheet.String(), texts.String())
}

// WorkbookOf makes a workbook from the XML inside sheetData and inside sst.
func WorkbookOf(sheet, shared string) []byte {
	const (
		head  = `<?xml version="1.0" encoding="UTF-8" standalone="yes"?>` + "\n"
		main  = `xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"`
		rels  = `xmlns="http://schemas.openxmlformats.org/package/2006/relationships"`
		types = `http://schemas.openxmlformats.org/officeDocument/2006/relationships`
		parts = `application/vnd.openxmlformats-officedocument.spreadsheetml.`
	)
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, part := range [...]struct{ name, content string }{
		{"[Content_Types].xml", `<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>` +
			`<Override PartName="/xl/workbook.xml" ContentType="` + parts + `sheet.main+xml"/><Override PartName="/xl/worksheets/sheet1.xml" ContentType="` + parts + `worksheet+xml"/>` +
			`<Override PartName="/xl/sharedStrings.xml" ContentType="` + parts + `sharedStrings+xml"/></Types>`},
		{"_rels/.rels", `<Relationships ` + rels + `><Relationship Id="rId1" Type="` + types + `/officeDocument" Target="xl/workbook.xml"/></Relationships>`},
		{"xl/workbook.xml", `<workbook ` + main + ` xmlns:r="` + types + `"><sheets><sheet name="Hoja1" sheetId="1" r:id="rId1"/></sheets></workbook>`},
		{"xl/_rels/workbook.xml.rels", `<Relationships ` + rels + `><Relationship Id="rId1" Type="` + types + `/worksheet" Target="worksheets/sheet1.xml"/>` +
			`<Relationship Id="rId2" Type="` + types + `/sharedStrings" Target="sharedStrings.xml"/></Relationships>`},
		{"xl/sharedStrings.xml", `<sst ` + main + `>` + shared + `</sst>`},
		{"xl/worksheets/sheet1.xml", `<worksheet ` + main + `><sheetData>` + sheet + `</sheetData></worksheet>`},
	} {
		w, err := z.Create(part.name)
		if err == nil {
			_, err = w.Write([]byte(head + part.content))
		}
		if err != nil {
			panic(err) // into memory
		}
	}
	if err := z.Close(); err != nil {
		panic(err)
	}
	return b.Bytes()
}
