package operation

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"cotejo/ledger"
	"cotejo/operation/entries"
	"cotejo/query"
)

// A lot is many questions of one kind that are asked for at once. It is a durable
// order in the ledger: opened with its price held, then worked off block by block by
// whoever owns the accounts (lot_run.go), whether or not anybody waits for it. An
// answer is a reader of that order (lot_answer.go), attached to it by whoever opened
// it, by a repeated request with the same Idempotency-Key, or later by its id.

// Lot makes an operation answer lists. Each item is a question with a record of its
// own; all of them are answered from one edition, as of one moment, and are all
// charged or all free (Question.Chargeable).
type Lot struct {
	Entry entries.Spec // of the list as it is sent
	// MaxBytes bounds the body.
	MaxBytes int
	// Tiers price the items by position, uses included.
	Tiers []Tier
	// Read reads an entry. Its key stands for the item: entries with one key are the
	// same item. A *checks.Problem refuses the entry alone.
	Read func(text string) (key uint64, err error)
	// Text is an item in its normal form.
	Text func(key uint64) string
	// Ask turns the parameters into questions about items. It is asked again with the
	// same parameters when an order is taken up after a restart.
	Ask func(Input) (func(key uint64) query.Question, error)
	// Columns are what a line of a summary says of an answer, and Brief appends their
	// values, in order, out of the Note of its Outcome.
	Columns []Column
	Brief   func(dst []Cell, note []byte) ([]Cell, error)
	Full    *jsonschema.Schema // of one answer
}

// Column is a column of a summary.
type Column struct {
	Name   string
	Schema *jsonschema.Schema
}

// Cell is a value of a summary: a text, a number, a list of texts, or null.
type Cell struct {
	Kind   CellKind
	Text   string
	Number int
	List   []string
}

// CellKind says which member of a Cell counts.
type CellKind byte

const (
	NullCell CellKind = iota
	TextCell
	NumberCell
	ListCell
)

// TextOrNull is a text, or null when it is empty.
func TextOrNull(text string) Cell {
	if text == "" {
		return Cell{}
	}
	return Cell{Kind: TextCell, Text: text}
}

// Names of the parameter that says how much is answered of each item.
const (
	detailName  = "detalle"
	detailFull  = "completo"
	detailBrief = "resumen"
)

// DetailParam is the parameter of operations that answer with the results of a lot.
func DetailParam() Param {
	return Param{
		Name: detailName, In: InQuery, Default: detailFull,
		Description: "completo: cada elemento es la respuesta entera de su consulta, byte por byte la que da GET /v1/verificaciones/{verification_id}. " +
			"resumen: un renglón por consulta; la respuesta entera se lee después con su verification_id.",
		Schema: OneOf("", detailFull, detailBrief),
	}
}

// maxEcho is how many characters of an entry are kept; a longer one is none.
const maxEcho = 40

// Formats of the results of a lot, in the order in which they are preferred.
var lotMedia = []Media{
	{mediaNDJSON, "Un objeto JSON en cada línea: la primera tiene «lote» (todo menos los resultados), después va un elemento de resultados por línea, y la última tiene «fin». " +
		"Sin la línea «fin» el archivo está incompleto."},
	{mediaCSV, "Un renglón por elemento recibido, en su orden, también los no válidos y los duplicados, con su motivo. UTF-8, comas, primera línea de títulos. " +
		"Una celda que una hoja de cálculo tomaría por fórmula empieza con '. Con detalle=completo, la columna respuesta tiene la respuesta entera."},
}

// Media types of lists.
const (
	mediaJSON   = "application/json"
	mediaNDJSON = "application/x-ndjson"
	mediaCSV    = "text/csv"
)

// listMedia are the types that a list may be sent as.
var listMedia = []struct {
	name   string
	format entries.Format
}{{mediaJSON, entries.JSON}, {mediaNDJSON, entries.NDJSON}, {mediaCSV, entries.CSV}}

func (op *Operation) checkLot() error {
	l := op.Lot
	switch {
	case op.Method != "POST" || op.Auth != Keyed || op.Service == "" || !prefixForm.MatchString(op.Prefix) || op.Prefix == ledger.OrderPrefix:
		return fmt.Errorf("a lot needs POST, a key, a service and a prefix")
	case l.Entry.Name == "" || l.Entry.List == "" || l.Entry.Max < 1 || l.Entry.Max > ledger.MaxOrderUnits || l.MaxBytes < 1:
		return fmt.Errorf("a lot needs names and limits of its list")
	case len(l.Tiers) == 0 || l.Read == nil || l.Text == nil || l.Ask == nil || l.Brief == nil || l.Full == nil || len(l.Columns) == 0:
		return fmt.Errorf("incomplete lot")
	case op.Body != nil || op.Streams:
		return fmt.Errorf("a lot has its own body and media")
	}
	return nil
}

// lotTitle names the answer of an operation with a Lot in the OpenAPI document.
func (op *Operation) lotTitle() string { return "LoteDe" + op.Lot.Full.Title }

// price is what the first item costs, and the steps behind it.
func (l *Lot) price() (first int64, steps []ledger.Step) {
	for _, t := range l.Tiers[1:] {
		steps = append(steps, ledger.Step{From: int64(t.From), Centavos: t.Unit})
	}
	return l.Tiers[0].Unit, steps
}

// tier is what positions of one price cost.
type tier struct {
	from, to int
	unit     int64
}

func (t *tier) cost() int64 { return int64(t.to-t.from+1) * t.unit }

// tiers divides the positions from from to to by their price.
func (l *Lot) tiers(from, to int) (list []tier) {
	for _, t := range l.Tiers {
		last := to
		if t.To > 0 {
			last = min(to, t.To)
		}
		if first := max(from, t.From); first <= last {
			list = append(list, tier{first, last, t.Unit})
		}
	}
	return list
}

// affordable is how many of the positions from from to to a balance pays.
func (l *Lot) affordable(from, to int, balance int64) (n int) {
	for _, t := range l.tiers(from, to) {
		units := min(int64(t.to-t.from+1), balance/t.unit)
		n += int(units)
		balance -= units * t.unit
		if units < int64(t.to-t.from+1) {
			break
		}
	}
	return n
}

// negotiate picks the media type of an answer by the header Accept; ok is false when
// it allows none. What is not preferred is offered in the order of offers.
func negotiate(accept []byte, offers ...string) (media string, ok bool) {
	text := strings.TrimSpace(string(accept))
	if text == "" {
		return offers[0], true
	}
	best := 0.0
	for _, offer := range offers {
		if q := acceptable(text, offer); q > best {
			media, best = offer, q
		}
	}
	return media, best > 0
}

// acceptable is the weight that Accept gives a media type: that of the range which
// names it most closely.
func acceptable(accept, media string) (weight float64) {
	kind, _, _ := strings.Cut(media, "/")
	closest := -1
	for part := range strings.SplitSeq(accept, ",") {
		name, params, _ := strings.Cut(part, ";")
		name = strings.ToLower(strings.TrimSpace(name))
		closeness := slices.Index([]string{"*/*", kind + "/*", media}, name)
		if closeness <= closest {
			continue
		}
		closest, weight = closeness, quality(params)
	}
	return weight
}

// quality is the parameter q of a media range; what cannot be read is 1.
func quality(params string) float64 {
	for p := range strings.SplitSeq(params, ";") {
		name, value, _ := strings.Cut(strings.TrimSpace(p), "=")
		if !strings.EqualFold(name, "q") {
			continue
		}
		var q float64
		if _, err := fmt.Sscanf(value, "%g", &q); err == nil && q >= 0 && q <= 1 {
			return q
		}
	}
	return 1
}

// prefersAsync reports that the header Prefer asks for an answer before the work is
// done (RFC 7240).
func prefersAsync(prefer []byte) bool {
	for part := range strings.SplitSeq(string(prefer), ",") {
		name, _, _ := strings.Cut(part, ";")
		if strings.EqualFold(strings.TrimSpace(name), "respond-async") {
			return true
		}
	}
	return false
}

// thousands writes 100000 as 100,000.
func thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
