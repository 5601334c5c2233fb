package query

import (
	"bytes"
	"testing"

	"cotejo/canon"
	"cotejo/checks"
	"cotejo/snapshots"
)

// FuzzArt69Cells fills the cells of two rows with anything: an item is canonical
// JSON with a person type, whatever an official file says.
func FuzzArt69Cells(f *testing.F) {
	f.Add(uint8(0), "ALFA\n\"S.A.\"", "moral", "2026-01-01")
	f.Add(uint8(13), "\\ \u2028 \ufffd", "", "2026-13-45")
	f.Add(uint8(9), "\x00\xff", "Persona", "2009")
	rfc, err := checks.ParseRFC("NOLO010101AA1")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, which uint8, name, person, date string) {
		a := &art69s[int(which)%len(art69s)]
		columns := len(a.Schema.Columns)
		rows := make([]snapshots.Row, 2)
		for i := range rows {
			r := snapshots.Row{ID: []string{rfc.String(), "id"}, Raw: make([]string, columns), Norm: make([]string, columns)}
			for c := range columns {
				r.Raw[c], r.Norm[c] = name+date, date
			}
			if a.tipo >= 0 {
				r.Norm[a.tipo] = person
			}
			rows[i] = r
		}
		l := listed69{a, rows}
		text := l.append(nil, rfc)
		if canonical, err := canon.Transform(text); err != nil || !bytes.Equal(canonical, text) {
			t.Fatalf("%v:\n%s\n%s", err, text, canonical)
		}
		derived := a.tipo < 0 || person != Moral && person != Fisica
		want := `"tipo_persona":"fisica","tipo_persona_derivado":true}`
		if !derived {
			want = `"tipo_persona":"` + person + `","tipo_persona_derivado":false}`
		}
		if !bytes.HasSuffix(text, []byte(want)) {
			t.Fatalf("%q: %s", person, text)
		}
	})
}
