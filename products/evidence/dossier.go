package evidence

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"maps"
	"slices"
	"strconv"
	"time"

	"cotejo/accounts"
	"cotejo/canon"
	"cotejo/civil"
	"cotejo/expedientes"
	"cotejo/ledger"
	"cotejo/operation"
)

// dossierFormat is raised when members of a dossier change their meaning.
const dossierFormat = 1

// dossier is everything that a dossier depends on: of the same view, moment and id
// it is the same text.
type dossier struct {
	id       ledger.VerificationID
	moment   time.Time
	org      accounts.Organization // a twin for tests, if test
	test     bool
	span     span
	view     *ledger.View
	head     ledger.Head // of view
	anchor   ledger.Head // what the anchor held when the view was opened, if anchored
	anchored bool
	// finish notes the hash of the content, before the end of the dossier is written.
	finish func(context.Context, [sha256.Size]byte) error

	used sourcesUsed // known when it is written
}

// errInconsistent says that what is stored contradicts itself: it never does unless
// the store was damaged, and then no dossier is given.
var errInconsistent = errors.New("evidence: los movimientos no suman lo que dice la cuenta; corra «cotejo verify all»")

// write writes the JSON text, and as its last member the hash of what is before it.
func (d *dossier) write(ctx context.Context, w io.Writer) error {
	t := &text{ctx: ctx, to: w, sum: sha256.New()}
	if err := d.body(t); err != nil {
		return err
	}
	if err := t.flush(); err != nil {
		return err
	}
	sum := [sha256.Size]byte(t.sum.Sum(nil))
	if err := d.finish(ctx, sum); err != nil {
		return err
	}
	t.lit(`,"contenido_sha256":"`).hex(sum[:]).lit(`"}`)
	return t.flush()
}

// body writes all but the last member.
func (d *dossier) body(t *text) error {
	d.used = sourcesUsed{versions: map[int]version{}, editions: map[[32]byte]bool{}, seen: map[string]bool{}}
	t.lit(`{"expediente_id":"`).lit(d.id.String()).lit(`","emitido":"`).moment(d.moment)
	t.lit(`","formato":`).int(dossierFormat).lit(`,"engine_version":"` + operation.EngineVersion)
	t.lit(`","organizacion":{"id":"`).lit(accounts.FormatOrg(d.org.ID)).lit(`","nombre":`).str(d.org.Name).lit(`}`)
	if d.test {
		t.lit(`,"sandbox":true`)
	}
	t.lit(`,"periodo":{"desde":"`).lit(d.span.from.String()).lit(`","hasta":"`).lit(d.span.to.String()).lit(`"}`)
	t.lit(`,"cadena":`).head(d.head)
	if d.anchored {
		t.lit(`,"ancla":`).head(d.anchor)
	} else {
		t.lit(`,"ancla":null`)
	}
	before, last, err := d.view.Span(d.span.from.Compact(), d.span.to.Compact())
	if err != nil {
		return err
	}
	sumBefore, err := d.sumAt(before)
	if err != nil {
		return err
	}
	sumAfter, err := d.sumAt(last)
	if err != nil {
		return err
	}
	if d.test { // a wallet never pays for tests
		t.lit(`,"cuenta":null`)
		last = before
	} else {
		t.lit(`,"cuenta":{"id":"`).lit(accounts.FormatAccount(d.org.Account))
		t.lit(`","movimiento_antes":`).uint(before).lit(`,"suma_antes":`).money(sumBefore)
		t.lit(`,"movimiento_despues":`).uint(last).lit(`,"suma_despues":`).money(sumAfter).lit(`}`)
	}
	services, err := d.verifications(t)
	if err != nil {
		return err
	}
	trail, err := d.movements(t, before, last)
	if err != nil {
		return err
	}
	if !d.test && sumBefore+trail.own.centavos+trail.account.centavos+trail.others.centavos != sumAfter {
		return errInconsistent
	}
	t.lit(`,"constancias":[]`)
	d.used.write(t)
	if err := d.issued(t); err != nil {
		return err
	}
	t.lit(`,"resumen":{"verificaciones":`).value(services.all).lit(`,"servicios":`).value(append([]totals{}, services.parts...))
	t.lit(`,"movimientos":{"propios":`).tally(&trail.own).lit(`,"de_la_cuenta":`).tally(&trail.account)
	t.lit(`,"otras_entidades":`).tally(&trail.others).lit(`}}`)
	return t.err
}

// sumAt is what the account's movements add up to, up to one of them.
func (d *dossier) sumAt(number uint64) (int64, error) {
	if number == 0 {
		return 0, nil
	}
	m, err := d.view.Movement(number)
	return m.Balance, err
}

// verifications writes the records of the period with what paid for each.
func (d *dossier) verifications(t *text) (sums byService, err error) {
	sums.all.add(0, 0, 0, 0)
	t.lit(`,"verificaciones":[`)
	var answer []byte
	first := true
	var m ledger.Movement // of the record before: one pays for many of an order
	err = d.view.Records(d.org.ID, d.test, d.span.from.Compact(), d.span.to.Compact(), func(r ledger.Record) (err error) {
		t.comma(&first)
		if answer, err = operation.AppendAnswer(answer[:0], &r); err != nil {
			return err
		}
		if err := d.used.add(&r); err != nil {
			return err
		}
		t.lit(`{"verification_id":"`).lit(r.ID.String()).lit(`","service":`).str(r.Service).lit(`,"result_code":`).str(r.Code)
		t.lit(`,"respuesta":`).bytes(answer).hashed(`,"respuesta_sha256":"`, answer)
		t.lit(`,"registro":`).bytes(r.Registro).hashed(`,"registro_sha256":"`, r.Registro)
		t.lit(`,"acta":`).bytes(r.Acta).hashed(`,"acta_sha256":"`, r.Acta)
		if r.Movement == 0 {
			sums.add(r.Service, 1, 0, 0, 0)
			t.lit(`,"cargo":null}`)
			return t.step()
		}
		if m.Number != r.Movement {
			if m, err = d.view.Movement(r.Movement); err != nil {
				return err
			}
		}
		if !m.Covers(&r) {
			return errInconsistent
		}
		uses := int64(0)
		if r.Centavos == 0 {
			uses = 1
		}
		sums.add(r.Service, 1, 1, r.Centavos, uses)
		t.lit(`,"cargo":`).movement(&m)
		if r.Ordinal != 0 {
			t.lit(`,"posicion":`).int(r.Ordinal).lit(`,"importe":`).money(r.Centavos)
		}
		t.lit(`}`)
		return t.step()
	})
	t.lit(`]`)
	return sums, err
}

// tally adds up movements.
type tally struct{ count, centavos, uses int64 }

func (s *tally) add(m *ledger.Movement) {
	s.count++
	s.centavos += m.Centavos
	s.uses += m.Uses
}

// trail is what moved in the account: by the organization, by nobody (what expired)
// and by its sister entities.
type trail struct{ own, account, others tally }

// movements writes the organization's own movements, and those of the account
// itself; of its sisters' it only adds up.
func (d *dossier) movements(t *text, before, last uint64) (sums trail, err error) {
	t.lit(`,"movimientos":[`)
	first := true
	err = d.view.Movements(ledger.Page{After: before, Before: last + 1}, func(m *ledger.Movement) error {
		switch m.Org {
		case d.org.ID:
			sums.own.add(m)
		case 0:
			sums.account.add(m)
		default:
			sums.others.add(m)
			return t.step()
		}
		t.comma(&first)
		t.movement(m)
		return t.step()
	})
	t.lit(`]`)
	return sums, err
}

// issued writes the dossiers that were noted before the view was opened.
func (d *dossier) issued(t *text) error {
	t.lit(`,"expedientes_emitidos":[`)
	first := true
	err := expedientes.Each(d.view.Reader, d.org.ID, func(i expedientes.Issued) error {
		t.comma(&first)
		t.lit(`{"expediente_id":"`).lit(i.ID.String()).lit(`","emitido":"`).moment(i.Moment)
		t.lit(`","desde":"`).day(i.From).lit(`","hasta":"`).day(i.To).lit(`","formato":"`).lit(i.Format.String())
		if i.Whole {
			t.lit(`","contenido_sha256":"`).hex(i.Sum[:]).lit(`"}`)
		} else {
			t.lit(`","contenido_sha256":null}`)
		}
		return t.step()
	})
	t.lit(`]`)
	return err
}

// sourcesUsed are the versions and editions that records rest on.
type sourcesUsed struct {
	versions map[int]version
	editions map[[32]byte]bool
	seen     map[string]bool // lists of versions, as actas have them
}

// version is a version as actas name it.
type version struct {
	ID         int     `json:"id"`
	Source     string  `json:"source"`
	SHA256     string  `json:"sha256"`
	URL        string  `json:"url"`
	Obtained   string  `json:"obtenida_de"`
	Downloaded string  `json:"descargada"`
	Published  *string `json:"publicada_en_reset"`
	Modified   *string `json:"ultima_modificacion_servidor"`
}

// known is what an acta says of a source on an earlier day.
type known struct {
	Edition string `json:"edicion_sha256"`
	Source  struct {
		version
		ID        string `json:"id"`
		VersionID int    `json:"source_version_id"`
	} `json:"fuente"`
}

func (u *sourcesUsed) add(r *ledger.Record) error {
	u.editions[r.Edition] = true
	list, err := operation.ActaVersions(r.Acta)
	if err != nil {
		return err
	}
	asOf := bytes.HasPrefix(r.Acta, []byte(`{"conocida":`))
	if !asOf && u.seen[string(list)] {
		return nil
	}
	u.seen[string(list)] = true
	var acta struct {
		Versions []version         `json:"versiones"`
		Known    map[string]*known `json:"conocida"`
	}
	if err := json.Unmarshal(r.Acta, &acta); err != nil {
		return fmt.Errorf("%w: %v: %w", operation.ErrRecord, r.ID, err)
	}
	for _, v := range acta.Versions {
		u.version(v)
	}
	for _, k := range acta.Known {
		if k == nil {
			continue
		}
		v := k.Source.version
		v.Source, v.ID = k.Source.ID, k.Source.VersionID
		u.version(v)
		var sum [32]byte
		if n, err := hex.Decode(sum[:], []byte(k.Edition)); err == nil && n == len(sum) {
			u.editions[sum] = true
		}
	}
	return nil
}

// version keeps the fullest mention.
func (u *sourcesUsed) version(v version) {
	if old, ok := u.versions[v.ID]; !ok || old.Published == nil {
		u.versions[v.ID] = v
	}
}

// versionIDs ascend.
func (u *sourcesUsed) versionIDs() []int { return slices.Sorted(maps.Keys(u.versions)) }

// editionSums ascend.
func (u *sourcesUsed) editionSums() [][32]byte {
	return slices.SortedFunc(maps.Keys(u.editions), func(a, b [32]byte) int { return bytes.Compare(a[:], b[:]) })
}

func (u *sourcesUsed) write(t *text) {
	t.lit(`,"versiones":[`)
	first := true
	for _, id := range u.versionIDs() {
		v := u.versions[id]
		t.comma(&first)
		t.lit(`{"source_version_id":`).int(id).lit(`,"source":`).str(v.Source).lit(`,"sha256":`).str(v.SHA256).lit(`,"url":`).str(v.URL)
		t.lit(`,"obtenida_de":`).str(v.Obtained).lit(`,"descargada":`).str(v.Downloaded)
		t.lit(`,"publicada_en_reset":`).strOrNull(v.Published).lit(`,"ultima_modificacion_servidor":`).strOrNull(v.Modified)
		t.lit(`,"archivo_oficial":`).str(officialPath(id)).lit(`}`)
	}
	t.lit(`],"ediciones":[`)
	first = true
	for _, sum := range u.editionSums() {
		t.comma(&first)
		t.lit(`{"edicion_sha256":"`).hex(sum[:]).lit(`","manifiesto":"/v1/auditoria/edicion/`).hex(sum[:]).lit(`"}`)
	}
	t.lit(`]`)
}

// text gathers JSON and passes it on, hashed, in pieces. After an error it does
// nothing more.
type text struct {
	ctx context.Context
	to  io.Writer
	sum hash.Hash
	b   []byte
	n   int // steps
	err error
}

// pieceBytes is how much text is gathered, at least, before it is passed on.
const pieceBytes = 16 << 10

// step passes on what was gathered when that is enough, and tells whether to go on.
func (t *text) step() error {
	if t.n++; len(t.b) >= pieceBytes || t.n%1024 == 0 && t.ctx.Err() != nil {
		return t.flush()
	}
	return t.err
}

func (t *text) flush() error {
	if t.err == nil && t.ctx.Err() != nil {
		t.err = context.Cause(t.ctx)
	}
	if t.err == nil {
		t.sum.Write(t.b)
		_, t.err = t.to.Write(t.b)
	}
	t.b = t.b[:0]
	return t.err
}

func (t *text) lit(s string) *text {
	t.b = append(t.b, s...)
	return t
}

func (t *text) bytes(s []byte) *text {
	t.b = append(t.b, s...)
	return t
}

func (t *text) str(s string) *text {
	t.b = canon.AppendString(t.b, s)
	return t
}

func (t *text) strOrNull(s *string) *text {
	if s == nil {
		return t.lit("null")
	}
	return t.str(*s)
}

func (t *text) hex(b []byte) *text {
	t.b = hex.AppendEncode(t.b, b)
	return t
}

// hashed writes the hash of a text as the member that lead begins.
func (t *text) hashed(lead string, of []byte) *text {
	sum := sha256.Sum256(of)
	return t.lit(lead).hex(sum[:]).lit(`"`)
}

func (t *text) int(n int) *text {
	t.b = strconv.AppendInt(t.b, int64(n), 10)
	return t
}

func (t *text) uint(n uint64) *text {
	t.b = strconv.AppendUint(t.b, n, 10)
	return t
}

func (t *text) money(centavos int64) *text {
	t.b = append(operation.AppendPesos(append(t.b, '"'), centavos), '"')
	return t
}

func (t *text) moment(at time.Time) *text {
	t.b = civil.AppendTimestamp(t.b, at)
	return t
}

// day writes YYYYMMDD as AAAA-MM-DD.
func (t *text) day(compact uint32) *text {
	t.b = civil.Date{Year: int(compact / 10000), Month: time.Month(compact / 100 % 100), Day: int(compact % 100)}.AppendTo(t.b)
	return t
}

func (t *text) comma(first *bool) {
	if !*first {
		t.lit(",")
	}
	*first = false
}

// value writes what encoding/json makes of v, which cannot fail.
func (t *text) value(v any) *text {
	b, err := json.Marshal(v)
	if t.err == nil {
		t.err = err
	}
	return t.bytes(b)
}

func (t *text) head(h ledger.Head) *text {
	return t.lit(`{"grupo":`).int(int(h.Group)).lit(`,"lote":`).uint(h.Seq).lit(`,"cabeza":"`).hex(h.Sum[:]).lit(`"}`)
}

func (t *text) tally(s *tally) *text {
	return t.lit(`{"movimientos":`).int(int(s.count)).lit(`,"monto":`).money(s.centavos).lit(`,"usos_individuales":`).int(int(s.uses)).lit(`}`)
}

// kinds are the kinds of movements, as a dossier names them.
var kinds = map[ledger.Kind]string{
	ledger.KindCredit: "abono", ledger.KindCharge: "cargo", ledger.KindExpiry: "vencimiento", ledger.KindUse: "uso",
	ledger.KindHold: "retencion", ledger.KindRelease: "liberacion", ledger.KindOrder: "lote",
}

func (t *text) movement(m *ledger.Movement) *text {
	t.lit(`{"movimiento":`).uint(m.Number).lit(`,"momento":"`).moment(m.Moment).lit(`","tipo":`).str(cmp.Or(kinds[m.Kind], "desconocido"))
	t.lit(`,"servicio":`)
	if m.Service == "" {
		t.lit("null")
	} else {
		t.str(m.Service)
	}
	t.lit(`,"monto":`).money(m.Centavos).lit(`,"usos_individuales":`).int(int(m.Uses)).lit(`,"lotes":[`)
	for i, l := range m.Lots {
		if i > 0 {
			t.lit(",")
		}
		t.lit(`{"lote":`).uint(l.Lot).lit(`,"monto":`).money(l.Centavos).lit(`,"usos_individuales":`).int(int(l.Uses)).lit(`}`)
	}
	t.lit(`],"suma":`).money(m.Balance)
	if m.Kind == ledger.KindCharge {
		t.lit(`,"verification_id":"`).lit(m.Record.String()).lit(`"`)
	}
	if m.Kind == ledger.KindOrder {
		t.lit(`,"lote_id":"`).lit(m.Order.String()).lit(`","desde":`).int(m.From).lit(`,"hasta":`).int(m.To)
		t.lit(`,"precio_unitario":`).money(m.Unit)
	}
	if m.Kind == ledger.KindUse {
		if m.Input == [sha256.Size]byte{} {
			t.lit(`,"entrada_hmac":null`)
		} else {
			t.lit(`,"entrada_hmac":"`).hex(m.Input[:]).lit(`"`)
		}
		t.lit(`,"tablas":`).str(m.Basis)
	}
	if m.Kind == ledger.KindCredit {
		t.lit(`,"precio_unitario":`).money(m.Unit).lit(`,"concepto":`).str(m.Reason)
	}
	return t.lit(`}`)
}
