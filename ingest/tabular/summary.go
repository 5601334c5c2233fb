package tabular

import (
	"bufio"
	"io"

	"cotejo/civil"
	"cotejo/snapshots"
)

// Reasons why a table is not taken into service. They are written into
// manifests and shown by /v1/salud.
const (
	HTML      = "HTML"           // a web page in the place of a table
	Truncated = "TRUNCADO"       // it ends early
	Unended   = "SIN_FIN"        // its last line does not end
	OtherList = "OTRA_LISTA"     // a part of it under its name
	Damaged   = "CODIFICACION"   // a copy whose letters were damaged
	Header    = "ENCABEZADO"     // its columns are not the known ones
	Broken    = "REGISTRO"       // a record cannot be read
	NoRows    = "SIN_FILAS"      // nothing in it
	FewerRows = "MENOS_FILAS"    // it shrank too much
	OlderCut  = "CORTE_ANTERIOR" // older than what is in service
	FutureCut = "CORTE_FUTURO"   // of a day that has not come
	Withdrawn = "RETIRADA"       // a person took it out of service
	Changed   = "VALOR_CAMBIADO" // it says something else of what was published before
	Rejected  = "RECHAZO"        // the server's refusal in the place of data
	Unread    = "ILEGIBLES"      // too many of its records had to be left out
	Failed    = "LECTOR"         // our own reader failed on it
)

// What readers count in a table, as written in manifests. Absent means zero.
const (
	UnassignedBytes   = "bytes_no_asignados"     // windows-1252 bytes without a character
	EmptyRows         = "filas_vacias"           // rows without any text
	UnreadRecords     = "registros_ilegibles"    // left out: their cells do not fit the titles
	UnknownSituations = "situacion_desconocida"  // kept as published
	UnreadDates       = "fechas_no_leidas"       // kept as published
	SerialDates       = "fechas_en_serie_excel"  // days since 1899-12-30
	ShortYears        = "fechas_con_anio_corto"  // two-digit years
	UnreadOficios     = "oficios_no_reconocidos" // kept as published
	UnreadRFCs        = "rfc_no_reconocidos"     // kept and never found: no one can ask for them
)

// Refusal is a table that must not be served, with the reason.
type Refusal struct{ Fault snapshots.Fault }

func (r *Refusal) Error() string { return r.Fault.Code + ": " + r.Fault.Message }

// Refuse returns a *Refusal.
func Refuse(code, message string) error {
	return &Refusal{snapshots.Fault{Code: code, Message: message}}
}

// Summary is what a reader learnt from one table beside its rows.
type Summary struct {
	Rows       int // given to add, suppressed ones included
	Suppressed int
	Corte      civil.Date // the cut date that the file states; zero when it does not
	Encoding   string
	// Single is the situation that every row is of, in a list that holds several; ""
	// when there are others, or fewer than two rows.
	Single  string
	Unended bool // the last record lacks its line end
	Counts  map[string]int
}

// Sniff looks at the first text of a table, without consuming it, and refuses
// what is empty or a web page.
func Sniff(text *bufio.Reader) error {
	for n := 1; n <= text.Size(); n++ {
		head, err := text.Peek(n)
		if err == io.EOF {
			return Refuse(NoRows, "el archivo está vacío; descárguelo de nuevo")
		}
		if err != nil {
			return err
		}
		switch head[n-1] {
		case ' ', '\t', '\r', '\n':
			continue
		case '<':
			return Refuse(HTML, "llegó una página web en lugar de la tabla; abra la dirección oficial en un navegador y revise si el archivo cambió de lugar")
		}
		return nil
	}
	return Refuse(NoRows, "el archivo empieza con demasiados blancos; descárguelo de nuevo")
}
