package operation

import (
	"context"
	"errors"
	"io"
	"strconv"
	"time"

	"cotejo/canon"
	"cotejo/civil"
	"cotejo/ledger"
)

// States of a lot, as answers name them.
const (
	lotWaiting = "EN_ESPERA"
	lotRunning = "EN_CURSO"
	lotDone    = "TERMINADO"
	lotStopped = "DETENIDO"
)

// lotAnswer is a reader of an order.
type lotAnswer struct {
	p     *Pipeline
	of    lotOf
	op    *Operation
	open  *openLot // nil: the order ended
	order ledger.Order
	terms lotTerms
	brief bool
	media string
	// pieces of the list; read when they are needed, if nil.
	pieces [][]byte
}

// attach finds out how far an order is that was opened before.
func (a *lotAnswer) attach(ctx context.Context) (err error) {
	a.open = a.p.lots.find(a.of)
	if a.order, err = a.p.Ledger.Order(ctx, a.of.account, a.of.OrderKey); err != nil {
		return notKept(err)
	}
	if o := &a.order; o.State != ledger.OrderOpen && !a.p.Now().Before(o.Ended.Add(ledger.OrderLife)) {
		return ErrNoLot // also before it is forgotten
	}
	if a.terms, err = a.p.terms(a.of); err != nil {
		return err
	}
	switch {
	case a.order.State != ledger.OrderOpen:
		a.open = nil
	case a.open == nil: // nobody has looked for open orders since the start
		a.open = a.p.lots.add(a.of, a.op, a.order, nil)
	}
	return nil
}

// whole refuses to answer a request for all of an order that stopped.
func (a *lotAnswer) whole() error {
	if a.order.State == ledger.OrderStopped {
		return &LotStoppedError{a.of.ID.String(), a.order.Reason}
	}
	return nil
}

// stream is the answer. It is whole when all of the order is.
func (a *lotAnswer) stream() *Stream {
	s := &Stream{Type: a.media, Size: -1, Write: a.write}
	if extension := map[string]string{mediaNDJSON: ".ndjson", mediaCSV: ".csv"}[a.media]; extension != "" {
		s.Name = a.of.ID.String() + extension
	}
	return s
}

// lotPiece is how much of an answer is gathered before it is passed on.
const lotPiece = 128 << 10

// write writes the answer while the order is worked off.
func (a *lotAnswer) write(ctx context.Context, w io.Writer) (err error) {
	if a.pieces == nil {
		if a.pieces, err = a.p.list(a.of); err != nil {
			return err
		}
	}
	var of lotForm
	switch b := (lotBody{lotAnswer: a, to: w, list: listReader{pieces: a.pieces}}); a.media {
	case mediaCSV:
		of = &lotCSV{lotBody: b}
	case mediaNDJSON:
		of = &lotLines{lotBody: b}
	default:
		of = &lotJSON{lotBody: b}
	}
	var totals lotTotals
	last := a.order.Done
	if a.open != nil {
		s, err := a.open.wait(ctx, func(s *lotState) bool { return s.priced })
		if err != nil {
			return err
		}
		totals, last = lotTotals{s.uses, s.centavos}, a.order.Units
	} else {
		totals = lotTotals{a.order.Uses, a.order.Centavos}
	}
	if err := of.begin(totals); err != nil {
		return err
	}
	reader := a.p.Ledger.Read(a.of.account)
	for sent := 0; sent < last; {
		done := last
		if a.open != nil {
			s, err := a.open.wait(ctx, func(s *lotState) bool { return s.done > sent })
			if err != nil {
				return err
			}
			done = s.done
		}
		before := sent
		err := reader.OrderRecords(a.of.OrderKey, sent+1, done, func(r *ledger.Record) error {
			sent++
			if sent%256 == 0 && ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return of.record(r)
		})
		if err != nil {
			return err
		}
		if sent == before {
			return errors.New("operation: de un lote faltan registros que dice tener")
		}
	}
	return of.end(last)
}

// lotTotals are what all of an order costs.
type lotTotals struct{ uses, centavos int64 }

// lotForm writes an answer in one format.
type lotForm interface {
	begin(lotTotals) error
	record(*ledger.Record) error
	end(results int) error
}

// lotBody is what the formats share.
type lotBody struct {
	*lotAnswer
	to     io.Writer
	list   listReader
	b      []byte
	cells  []Cell
	splice splicer
}

// pass hands on what was gathered, when that is enough.
func (b *lotBody) pass() error {
	if len(b.b) < lotPiece {
		return nil
	}
	return b.flush()
}

func (b *lotBody) flush() error {
	_, err := b.to.Write(b.b)
	b.b = b.b[:0]
	return err
}

// entry is the entry of the list that the next record answers.
func (b *lotBody) entry(r *ledger.Record) (listed, error) {
	e, ok, err := b.list.item()
	if err == nil && !ok {
		err = errList
	}
	return e, err
}

// element appends one item of resultados.
func (b *lotBody) element(r *ledger.Record) (err error) {
	if !b.brief {
		b.b, err = b.splice.append(b.b, r)
		return err
	}
	e, err := b.entry(r)
	if err != nil {
		return err
	}
	return b.line(&e, r)
}

// line appends a summary.
func (b *lotBody) line(e *listed, r *ledger.Record) (err error) {
	acta, ok := readActa(r.Acta)
	if !ok {
		return ErrRecord
	}
	l := b.op.Lot
	if b.cells, err = l.Brief(b.cells[:0], r.Note); err != nil {
		return err
	}
	d := append(b.b, `{"linea":`...)
	d = strconv.AppendInt(d, int64(e.line), 10)
	d = append(append(append(d, `,"`...), l.Entry.Name...), `":`...)
	d = canon.AppendString(d, l.Text(e.key))
	d = append(d, `,"verification_id":"`...)
	d = r.ID.AppendTo(d)
	d = append(d, `","result_code":`...)
	d = canon.AppendString(d, r.Code)
	for i := range b.cells {
		d = append(append(append(d, `,"`...), l.Columns[i].Name...), `":`...)
		d = b.cells[i].appendJSON(d)
	}
	d = append(d, `,"registro_sha256":`...)
	b.b = append(append(d, acta.registroSHA256...), '}')
	return nil
}

func (c *Cell) appendJSON(dst []byte) []byte {
	switch c.Kind {
	case TextCell:
		return canon.AppendString(dst, c.Text)
	case NumberCell:
		return strconv.AppendInt(dst, int64(c.Number), 10)
	case ListCell:
		dst = append(dst, '[')
		for i, text := range c.List {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = canon.AppendString(dst, text)
		}
		return append(dst, ']')
	}
	return append(dst, "null"...)
}

// head appends the members of an answer that are not resultados, without braces. It
// passes on what it gathers.
func (b *lotBody) head(t lotTotals) error {
	o := &b.order
	state := lotDone
	if o.State == ledger.OrderStopped {
		state = lotStopped
	}
	text := func(name, value string) {
		b.b = append(append(append(b.b, `,"`...), name...), `":`...)
		b.b = canon.AppendString(b.b, value)
	}
	number := func(name string, value int) {
		b.b = append(append(append(b.b, `,"`...), name...), `":`...)
		b.b = strconv.AppendInt(b.b, int64(value), 10)
	}
	b.b = append(b.b, `"lote_id":"`...)
	b.b = append(o.ID.AppendTo(b.b), '"')
	text("service", o.Service)
	text("estado", state)
	if state == lotStopped {
		text("motivo", o.Reason)
	}
	b.b = append(b.b, `,"consultado":"`...)
	b.b = append(civil.AppendTimestamp(b.b, o.Opened), '"')
	text("edicion_sha256", editionHex(o.Edition))
	motor, err := b.motor()
	if err != nil {
		return err
	}
	text("motor", motor)
	number("recibidos", b.terms.Received)
	results := o.Units
	if state == lotStopped {
		results = o.Done
	}
	number("consultados", results)
	b.b = append(b.b, `,"costo":"`...)
	b.b = append(AppendPesos(b.b, t.centavos), '"')
	number("usos_individuales", int(t.uses))
	b.b = append(b.b, `,"escalones":`...)
	tiers, err := b.tiers(t, results)
	if err != nil {
		return err
	}
	b.b = appendTiers(b.b, tiers)
	if err := b.entries("duplicados", listedRepeated, b.repeated); err != nil {
		return err
	}
	if err := b.entries("invalidos", listedRefused, b.refused); err != nil {
		return err
	}
	if o.Sandbox {
		b.b = append(b.b, `,"sandbox":true`...)
	}
	return nil
}

// motor names the engine that answers.
func (b *lotBody) motor() (string, error) {
	in, err := b.op.input(b.terms.Args)
	if err != nil {
		return "", err
	}
	in.today = civil.Of(b.order.Opened)
	ask, err := b.op.Lot.Ask(in)
	if err != nil {
		return "", err
	}
	return ask(b.terms.Sample).Motor(), nil
}

// tiers are the positions that money pays for, by their price. Uses pay for the first
// positions, unless the order was taken up again after its hold was over: then what
// paid for each is read from its record.
func (b *lotBody) tiers(t lotTotals, results int) (list []tier, err error) {
	if b.order.Price == 0 {
		return nil, nil
	}
	list = b.op.Lot.tiers(int(t.uses)+1, results)
	sum := int64(0)
	for i := range list {
		sum += list[i].cost()
	}
	if sum == t.centavos {
		return list, nil
	}
	list = nil
	err = b.p.Ledger.Read(b.of.account).OrderRecords(b.of.OrderKey, 1, b.order.Done, func(r *ledger.Record) error {
		if r.Centavos == 0 {
			return nil
		}
		if n := len(list); n > 0 && list[n-1].unit == r.Centavos && list[n-1].to == r.Ordinal-1 {
			list[n-1].to++
		} else {
			list = append(list, tier{r.Ordinal, r.Ordinal, r.Centavos})
		}
		return nil
	})
	return list, err
}

func appendTiers(dst []byte, tiers []tier) []byte {
	dst = append(dst, '[')
	for i := range tiers {
		t := &tiers[i]
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, `{"desde":`...)
		dst = strconv.AppendInt(dst, int64(t.from), 10)
		dst = append(dst, `,"hasta":`...)
		dst = strconv.AppendInt(dst, int64(t.to), 10)
		dst = append(dst, `,"consultas":`...)
		dst = strconv.AppendInt(dst, int64(t.to-t.from+1), 10)
		dst = append(dst, `,"precio_unitario":"`...)
		dst = AppendPesos(dst, t.unit)
		dst = append(dst, `","importe":"`...)
		dst = AppendPesos(dst, t.cost())
		dst = append(dst, `"}`...)
	}
	return append(dst, ']')
}

// entries appends a list of the entries of one kind.
func (b *lotBody) entries(name string, kind listedKind, appendTo func([]byte, *listed) []byte) error {
	b.b = append(append(append(b.b, `,"`...), name...), `":[`...)
	all := listReader{pieces: b.pieces}
	var e listed // one for all
	for first := true; ; {
		var ok bool
		var err error
		if e, ok, err = all.next(); err != nil {
			return err
		}
		if !ok {
			b.b = append(b.b, ']')
			return nil
		}
		if e.kind != kind {
			continue
		}
		if !first {
			b.b = append(b.b, ',')
		}
		first = false
		b.b = appendTo(b.b, &e)
		if err := b.pass(); err != nil {
			return err
		}
	}
}

func (b *lotBody) repeated(dst []byte, e *listed) []byte {
	l := b.op.Lot
	dst = append(dst, `{"linea":`...)
	dst = strconv.AppendInt(dst, int64(e.line), 10)
	dst = append(append(append(dst, `,"`...), l.Entry.Name...), `":`...)
	dst = canon.AppendString(dst, l.Text(e.key))
	dst = append(dst, `,"primera_linea":`...)
	return append(strconv.AppendInt(dst, int64(e.first), 10), '}')
}

func (b *lotBody) refused(dst []byte, e *listed) []byte {
	problem := b.op.Lot.refusal(e.text)
	dst = append(dst, `{"linea":`...)
	dst = strconv.AppendInt(dst, int64(e.line), 10)
	dst = append(dst, `,"valor":`...)
	dst = canon.AppendString(dst, string(e.text))
	dst = append(dst, `,"type":`...)
	dst = canon.AppendString(dst, problem.Type)
	dst = append(dst, `,"msg":`...)
	return append(canon.AppendString(dst, problem.Rule), '}')
}

// lotJSON is one object.
type lotJSON struct {
	lotBody
	some bool
}

func (f *lotJSON) begin(t lotTotals) error {
	f.b = append(f.b, '{')
	err := f.head(t)
	f.b = append(f.b, `,"resultados":[`...)
	return err
}

func (f *lotJSON) record(r *ledger.Record) error {
	if f.some {
		f.b = append(f.b, ',')
	}
	f.some = true
	if err := f.element(r); err != nil {
		return err
	}
	return f.pass()
}

func (f *lotJSON) end(int) error {
	f.b = append(f.b, "]}"...)
	return f.flush()
}

// lotLines is an object on each line.
type lotLines struct{ lotBody }

func (f *lotLines) begin(t lotTotals) error {
	f.b = append(f.b, `{"lote":{`...)
	err := f.head(t)
	f.b = append(f.b, "}}\n"...)
	return err
}

func (f *lotLines) record(r *ledger.Record) error {
	if err := f.element(r); err != nil {
		return err
	}
	f.b = append(f.b, '\n')
	return f.pass()
}

func (f *lotLines) end(results int) error {
	f.b = append(f.b, `{"fin":{"lote_id":"`...)
	f.b = f.of.ID.AppendTo(f.b)
	f.b = append(f.b, `","resultados":`...)
	f.b = strconv.AppendInt(f.b, int64(results), 10)
	f.b = append(f.b, "}}\n"...)
	return f.flush()
}

// job appends what is told of an order beside its results.
func (a *lotAnswer) job(dst []byte) []byte {
	o := &a.order
	state, done, totals := "", o.Done, lotTotals{o.Uses, o.Centavos}
	switch o.State {
	case ledger.OrderDone:
		state = lotDone
	case ledger.OrderStopped:
		state = lotStopped
	default:
		state = lotWaiting
		if a.open != nil {
			s := a.open.state()
			done = max(done, s.done)
			if s.started {
				state = lotRunning
			}
			if s.priced {
				totals = lotTotals{s.uses, s.centavos}
			}
		}
	}
	dst = append(dst, `{"lote_id":"`...)
	dst = o.ID.AppendTo(dst)
	dst = append(dst, `","estado":"`...)
	dst = append(append(dst, state...), '"')
	if o.State == ledger.OrderStopped {
		dst = append(dst, `,"motivo":`...)
		dst = canon.AppendString(dst, o.Reason)
	}
	dst = append(dst, `,"avance":{"hechas":`...)
	dst = strconv.AppendInt(dst, int64(done), 10)
	dst = append(dst, `,"total":`...)
	dst = strconv.AppendInt(dst, int64(o.Units), 10)
	dst = append(dst, `},"creado":"`...)
	dst = civil.AppendTimestamp(dst, o.Opened)
	dst = append(dst, `","terminado":`...)
	expires := time.Time{}
	if !o.Ended.IsZero() {
		expires = o.Ended.Add(ledger.OrderLife)
	}
	dst = appendMomentOrNull(dst, o.Ended)
	dst = append(dst, `,"vence":`...)
	dst = appendMomentOrNull(dst, expires)
	dst = append(dst, `,"costo":"`...)
	dst = AppendPesos(dst, totals.centavos)
	dst = append(dst, `","usos_individuales":`...)
	dst = strconv.AppendInt(dst, totals.uses, 10)
	dst = append(dst, `,"resultados_url":`...)
	dst = canon.AppendString(dst, a.op.lotPath(o.ID.String())+"/resultados")
	if o.Sandbox {
		dst = append(dst, `,"sandbox":true`...)
	}
	return append(dst, '}')
}

func appendMomentOrNull(dst []byte, at time.Time) []byte {
	if at.IsZero() {
		return append(dst, "null"...)
	}
	dst = append(dst, '"')
	return append(civil.AppendTimestamp(dst, at), '"')
}
