package ingest

import (
	"cotejo/ingest/sat69b"
	"cotejo/ingest/tabular"
	"cotejo/query"
	"cotejo/snapshots"
)

// satContainer is the SAT's storage container for open data. The older host,
// omawww.sat.gob.mx/cifras_sat, still answers 200 with lists that were frozen at
// the end of 2025: it must never become a fallback.
const satContainer = "https://wu1agsprosta001.blob.core.windows.net/agsc-publicaciones"

const (
	// max69B is several times what the complete list has ever measured (4.7 MB).
	max69B = 32 << 20
	// max69BBis is a thousand times what the list has ever measured (1.2 kB).
	max69BBis = 1 << 20
)

// Source is one official publication and how it is read.
type Source struct {
	Schema snapshots.Schema
	// MaxBytes is the most that its file may have, unpacked: it bounds what a
	// hostile server can make us store and hold in memory.
	MaxBytes int64

	// base is the official address, which a mirror takes the place of; path is
	// where the file was when this program was made. What the index page says
	// goes before it, within base and under the same name.
	base string
	path string
	// linkText is a part of the text that links to the file.
	linkText string

	// Read gives every row of the official bytes to add. It is a pure function of
	// the bytes and Schema.Reader, so stored bytes can be read again years later;
	// a *tabular.Refusal says why they must not be served. It may open the bytes
	// more than once. The slices of a row are valid until add returns.
	Read func(official snapshots.Opener, add func(snapshots.Row) error) (tabular.Summary, error)
}

// URL is the official address, as far as it is known without asking.
func (s *Source) URL() string { return s.base + s.path }

// registry is every source that can be ingested, by id.
var registry = []Source{
	{
		Schema:   query.Sat69B,
		MaxBytes: max69B,
		base:     satContainer,
		path:     "/Datos_abiertos/Documents_AGAFF/Listado_completo_69-B.csv",
		linkText: "Listado completo",
		Read:     sat69b.Read,
	},
	{
		Schema:   query.Sat69BBis,
		MaxBytes: max69BBis,
		base:     satContainer,
		path:     "/Datos_abiertos/Documents_AGGC/Listado_69_B_Bis_Completo.csv",
		Read:     sat69b.ReadBis,
	},
}

// Lookup returns a source; ok is false when there is none with that id.
func Lookup(id string) (s Source, ok bool) {
	for _, s := range registry {
		if s.Schema.Source == id {
			return s, true
		}
	}
	return Source{}, false
}

// Known reports whether there is a source with that id.
func Known(id string) bool {
	_, ok := Lookup(id)
	return ok
}

// Sources lists the ids.
func Sources() []string {
	var ids []string
	for _, s := range registry {
		ids = append(ids, s.Schema.Source)
	}
	return ids
}
