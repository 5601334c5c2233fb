package ingest

import (
	"fmt"
	"slices"

	"cotejo/catalog"
	"cotejo/civil"
	"cotejo/ingest/banxico"
	"cotejo/ingest/contratos"
	"cotejo/ingest/ift"
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
	// indexed: the index page of the SAT says where the file is. linkText is a part of
	// the text that links to it.
	indexed  bool
	linkText string
	// whenLinked: there may be no such file. Until it was found once, only the index
	// page tells: ErrNotOffered while it does not link it.
	whenLinked bool
	// query is what the address ends in when it depends on the day; nil: nothing.
	query func(day civil.Date) string
	// page is where people find the publication, when there is no address that a
	// program could know: Access.URL says where the file is.
	page string
	// token is the request header for a secret without which the server answers
	// nothing, tokenSetting where its file is configured and tokenHelp how to get
	// one; "": it needs none.
	token, tokenSetting, tokenHelp string

	// Read gives every row of the official bytes to add. It is a pure function of
	// the bytes and Schema.Reader, so stored bytes can be read again years later;
	// a *tabular.Refusal says why they must not be served. It may open the bytes
	// more than once. The slices of a row are valid until add returns.
	Read func(official snapshots.Opener, add func(snapshots.Row) error) (tabular.Summary, error)
	// judge adds to the gates of all tables what only this source can say, of bytes
	// that Read could read; before are those in service, nil when none are. nil: nothing.
	judge func(before, staged snapshots.Opener) ([]snapshots.Fault, []snapshots.Notice, error)
}

// URL is the official address, as far as it is known without asking: that of a
// page when there is none of a file.
func (s *Source) URL() string {
	if s.page != "" {
		return s.page
	}
	return s.base + s.path
}

// Lacks says, in Spanish, what has to be configured before the source can be
// downloaded from its official address, and how to get it; "" when nothing is. A
// mirror and a file that someone has need none of it.
func (s *Source) Lacks(a Access) string {
	switch {
	case s.token != "" && a.TokenFile == "":
		return fmt.Sprintf("%s necesita un token de la autoridad y no hay ninguno configurado: %s", s.Schema.Source, s.tokenHelp)
	case s.page != "" && a.URL == "":
		return fmt.Sprintf("%s no tiene una dirección fija de descarga: descargue el archivo de %s y cárguelo con «cotejo ingest --file %s=RUTA --corte AAAA-MM-DD», o indique su dirección en fuentes.%s.url",
			s.Schema.Source, s.page, s.Schema.Source, s.Schema.Source)
	}
	return ""
}

// NeedsToken reports whether the server answers nothing without a secret.
func (s *Source) NeedsToken() bool { return s.token != "" }

// NeedsURL reports whether no program can know where the file is.
func (s *Source) NeedsURL() bool { return s.page != "" }

const (
	banxicoHost = "https://www.banxico.org.mx"
	iftHost     = "https://sns.ift.org.mx:8081"
)

// registry is every source that can be ingested, by id.
var registry = append([]Source{
	{
		Schema:   query.Sat69B,
		MaxBytes: max69B,
		base:     satContainer,
		path:     "/Datos_abiertos/Documents_AGAFF/Listado_completo_69-B.csv",
		indexed:  true,
		linkText: "Listado completo",
		Read:     sat69b.Read,
	},
	{
		Schema:   query.Sat69BBis,
		MaxBytes: max69BBis,
		base:     satContainer,
		path:     "/Datos_abiertos/Documents_AGGC/Listado_69_B_Bis_Completo.csv",
		indexed:  true,
		Read:     sat69b.ReadBis,
	},
	{
		Schema:       catalog.FIXSource,
		MaxBytes:     banxico.MaxBytes,
		base:         banxicoHost,
		path:         "/SieAPIRest/service/v1/series/" + catalog.SeriesFIX + "/datos",
		token:        "Bmx-Token",
		tokenSetting: "banxico_token_file",
		tokenHelp: "pídalo sin costo en " + banxicoHost + "/SieAPIRest/service/v1/token, guárdelo en un archivo que solo usted lea (chmod 600) " +
			"e indíquelo en banxico_token_file (COTEJO_BANXICO_TOKEN_FILE o --banxico-token-file). Sin él se responde la serie incluida en el programa",
		Read:  banxico.ReadFIX,
		judge: banxico.JudgeFIX,
	},
	{
		Schema:   catalog.SPEISource,
		MaxBytes: banxico.MaxBytes,
		base:     banxicoHost,
		path:     "/cep/instituciones.do",
		query: func(day civil.Date) string {
			return fmt.Sprintf("fecha=%02d-%02d-%04d", day.Day, day.Month, day.Year)
		},
		Read:  banxico.ReadSPEI,
		judge: banxico.JudgeSPEI,
	},
	{
		Schema:   catalog.NumberingSource,
		MaxBytes: ift.MaxBytes,
		base:     iftHost,
		path:     "/sns-frontend/planes-numeracion/pnn.csv", // of a mirror
		page:     iftHost + "/sns-frontend/planes-numeracion/descarga-publica.xhtml",
		Read:     ift.Read,
	},
}, slices.Concat(art69(), contractSources(), sanctionSources())...)

const (
	// contractsHost publishes the contracts of a year from 2023 on; that of the
	// running year may not be there before the authority first writes it.
	contractsHost = "https://upcp-compranet.buengobierno.gob.mx"
	contractsPath = "/cnetassets/datos_abiertos_contratos_expedientes/"
	// contractsPage is where people find the files of 2018 to 2022, whose names carry
	// the moment at which they were made.
	contractsPage = "https://comprasmx.buengobierno.gob.mx/"
)

// contractSources are the files of public contracts, one a year.
func contractSources() (all []Source) {
	for i, schema := range query.Contratos {
		year := query.FirstContractYear + i
		s := Source{
			Schema: schema, MaxBytes: contratos.MaxBytes, Read: contratos.Reader(year),
			base: contractsHost, path: fmt.Sprintf("%sContratos_CompraNet%d.csv", contractsPath, year),
		}
		if year < 2023 {
			s.page, s.path = contractsPage, fmt.Sprintf("%sContratos%d.csv", contractsPath, year) // of a mirror
		}
		all = append(all, s)
	}
	return all
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
