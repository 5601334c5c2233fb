package query

import (
	"bytes"
	"testing"

	"cotejo/canon"
	"cotejo/civil"
	"cotejo/snapshots"
)

// FuzzCells fills the cells of a row, and of the states before it, with anything:
// the block is canonical JSON whatever an official file says.
func FuzzCells(f *testing.F) {
	f.Add("2018-05-18 // 2019-01-02", "500-05-2018-1 // 500-05-2019-2", "ALFA // nota", "Definitivo", uint64(1<<col69bSituacion))
	f.Add(`20"1-05-18`, `"`, `//`, `\`, uint64(1<<col69bNombre|1<<col69bPresuncionSAT))
	f.Add("2018-05-1\"", "\x00\xff", "\u2028 // \ud7ff", "", ^uint64(0))
	f.Fuzz(func(t *testing.T, date, oficio, name, situacion string, changed uint64) {
		columns := len(Sat69B.Columns)
		row := snapshots.Row{ID: []string{"AAA010101AA1", oficio}, Raw: make([]string, columns), Norm: make([]string, columns)}
		for c := range row.Norm {
			if c%2 == 1 {
				row.Norm[c] = date
			} else {
				row.Norm[c] = oficio
			}
		}
		row.Norm[col69bNombre], row.Norm[col69bSituacion] = name, situacion
		copy(row.Raw, row.Norm)
		changed &= 1<<columns - 1
		var before []string
		for c := range columns {
			if changed&(1<<c) != 0 {
				before = append(before, []string{situacion, date, oficio, name}[c%4])
			}
		}
		chain := make([]snapshots.ChainVersion, 4)
		for i := range chain {
			chain[i] = snapshots.ChainVersion{SHA256: "aa", OrderDate: civil.Date{Year: 2026, Month: 1, Day: 1 + i}, Suppressed: i}
		}
		past := snapshots.Past{ID: row.ID, Events: []snapshots.Event{
			{Version: 1, Kind: snapshots.Removed, Before: row.Norm},
			{Version: 2, Kind: snapshots.Added},
			{Version: 3, Kind: snapshots.Changed, Mask: changed, Before: before},
		}}
		past.Present = true
		gone := snapshots.Past{ID: row.ID, Ordinal: 1, Events: past.Events[:1]}
		rows := []snapshots.Row{row}
		events := append(lista69B.versionEvents(chain, past, rows), lista69B.stageEvents(&row)...)
		text := lista69B.appendSituacion([]byte{'['}, &row)
		for i := range events {
			text = lista69B.appendEvent(append(text, ','), &events[i])
		}
		for _, d := range []string{"0001-01-01", "2018-05-18", "2019-06-01", "9999-12-31"} {
			d, _ := civil.Parse(d)
			text = lista69B.appendEfectiva(append(text, ','), rows, chain, []snapshots.Past{past, gone}, d)
		}
		text = append(text, ']')
		if canonical, err := canon.Transform(text); err != nil || !bytes.Equal(canonical, text) {
			t.Fatalf("%v:\n%s\n%s", err, text, canonical)
		}
		for _, e := range events {
			if _, err := civil.Parse(e.fecha); err != nil {
				t.Fatalf("fecha %q", e.fecha)
			}
		}
	})
}

// FuzzEntrada reads inputs that a registro claims: what is accepted is written
// again in the one canonical way, and is read as the same question.
func FuzzEntrada(f *testing.F) {
	f.Add([]byte(`{"rfc":"EFO010101AA1","sancionados":true}`))
	f.Add([]byte(`{"en_fecha":"2021-06-01","rfc":"EFO010101AA1","sancionados":false}`))
	f.Add([]byte(`{"en_fecha":"1899-12-31","rfc":"EFO010101AA1","sancionados":false}`))
	f.Add([]byte(`{"en_fecha":"","rfc":"EFO010101AA1","sancionados":false}`))
	f.Add([]byte(`{"en_fecha":null,"rfc":"efo 010101-aa1","sancionados":false,"sancionados":true}`))
	f.Fuzz(func(t *testing.T, entrada []byte) {
		q, err := parseCompany(entrada)
		if err != nil {
			return
		}
		again := q.AppendEntrada(nil)
		if canonical, err := canon.Transform(again); err != nil || !bytes.Equal(canonical, again) {
			t.Fatalf("%q: %s no es canónico (%v)", entrada, again, err)
		}
		if same, err := parseCompany(again); err != nil || same != q {
			t.Fatalf("%q: %s: %+v, %v", entrada, again, same, err)
		}
		if d := q.(Company).Past; !d.IsZero() {
			if _, err := ParseEnFecha(d.String()); err != nil {
				t.Fatalf("%q: %v", entrada, err)
			}
		}
	})
}
