package export

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/schema"

	"cotejo/accounts"
	"cotejo/civil"
	"cotejo/ledger"
	"cotejo/query"
)

// The files of a Parquet export.
const (
	recordsFile   = "registros.parquet"
	movementsFile = "movimientos.parquet"
	usageFile     = "uso.parquet"
)

// Parquet writes records, movements and uses as tables into the folder to, which
// must be empty or missing. When it returns nil the export is durable; on an error
// nothing is left of it.
func Parquet(ctx context.Context, to string, s Source) (Manifest, error) {
	return s.write(to, func(f *folder) (*Manifest, error) {
		t, err := newTables(f)
		if err != nil {
			return nil, err
		}
		heads, err := s.walk(ctx, f, func(v ledger.GroupView) error {
			return v.Accounts(func(account ledger.AccountID) error {
				a := accountRows{Source: &s, v: v, account: account, name: []byte(accounts.FormatAccount(account))}
				a.step = func() error { return s.step(ctx, f, v) }
				if err := a.records(t.records); err != nil {
					return err
				}
				if err := a.movements(t.movements); err != nil {
					return err
				}
				return a.usage(t.usage)
			})
		})
		if err != nil {
			return nil, err
		}
		for _, table := range []*table{t.records.table, t.movements.table, t.usage.table} {
			if err := table.close(); err != nil {
				return nil, err
			}
		}
		return s.manifest(KindParquet, heads), nil
	})
}

type tables struct {
	records   *recordsTable
	movements *movementsTable
	usage     *usageTable
}

func newTables(f *folder) (t tables, err error) {
	if t.records, err = newRecordsTable(f); err != nil {
		return t, err
	}
	if t.movements, err = newMovementsTable(f); err != nil {
		return t, err
	}
	t.usage, err = newUsageTable(f)
	return t, err
}

// accountRows brings one account into the tables.
type accountRows struct {
	*Source
	v       ledger.GroupView
	account ledger.AccountID
	name    []byte
	step    func() error // before each row
}

func (a *accountRows) org(id ledger.OrgID) []byte { return accounts.AppendOrg(nil, id) }

type recordsTable struct {
	*table
	id, account, org, sandbox, service, code, operation, asked, date, motor *column
	centavos, movement, order, ordinal, edition, sum, registro, acta        *column
}

func newRecordsTable(f *folder) (*recordsTable, error) {
	t := &recordsTable{
		id:      text("verification_id", required).distinct(),
		account: text("cuenta", required), org: text("org", required), sandbox: boolean("sandbox"),
		service: text("service", required), code: text("result_code", required), operation: text("operacion", required),
		asked: moment("consultado", optional), date: day("fecha", optional), motor: text("motor", optional),
		centavos: integer("centavos", required), movement: integer("movimiento", optional),
		order: text("lote_id", optional), ordinal: integer("posicion", optional),
		edition: text("edicion_sha256", required), sum: text("registro_sha256", required).distinct(),
		registro: text("registro", required).lengthy(), acta: text("acta", required).lengthy(),
	}
	leaves := []*column{
		t.id, t.account, t.org, t.sandbox, t.service, t.code, t.operation, t.asked, t.date, t.motor,
		t.centavos, t.movement, t.order, t.ordinal, t.edition, t.sum, t.registro, t.acta,
	}
	var err error
	t.table, err = newTable(f, recordsFile, fieldsOf(leaves), leaves)
	return t, err
}

func (a *accountRows) records(t *recordsTable) error {
	return a.v.Records(a.account, func(r ledger.Record) error {
		if !a.wants(r.Org) {
			return nil
		}
		if err := a.step(); err != nil {
			return err
		}
		t.id.text([]byte(r.ID.String()))
		t.account.text(a.name)
		t.org.text(a.org(r.Org))
		t.sandbox.bool(r.Sandbox)
		t.service.text([]byte(r.Service))
		t.code.text([]byte(r.Code))
		t.operation.text([]byte(r.Operation))
		// What cannot be read of a damaged text is null here; the text itself says why.
		var acta struct {
			Asked time.Time `json:"consultado"`
		}
		if json.Unmarshal(r.Acta, &acta) == nil && !acta.Asked.IsZero() {
			t.asked.int(acta.Asked.UnixMicro())
		} else {
			t.asked.null()
		}
		header, err := query.ReadHeader(r.Registro)
		if err == nil && !header.Fecha.IsZero() {
			t.date.day(epochDay(header.Fecha))
		} else {
			t.date.null()
		}
		t.motor.textOr(header.Motor)
		t.centavos.int(r.Centavos)
		t.movement.intOr(int64(r.Movement))
		if r.Ordinal != 0 {
			t.order.text([]byte(r.Order.String()))
		} else {
			t.order.null()
		}
		t.ordinal.intOr(int64(r.Ordinal))
		t.edition.text(hex.AppendEncode(nil, r.Edition[:]))
		sum := sha256.Sum256(r.Registro)
		t.sum.text(hex.AppendEncode(nil, sum[:]))
		t.registro.text(r.Registro)
		t.acta.text(r.Acta)
		return t.end(len(r.Registro) + len(r.Acta))
	})
}

// epochDay counts days since 1970-01-01.
func epochDay(d civil.Date) int32 {
	return int32(civil.Date{Year: 1970, Month: time.January, Day: 1}.Days(d))
}

type movementsTable struct {
	*table
	account, number, moment, kind, centavos, uses, balance, org, service *column
	record, order, from, to, hold, until, input, basis, unit, reason     *column
	lot, part, partUses                                                  *column
}

func newMovementsTable(f *folder) (*movementsTable, error) {
	t := &movementsTable{
		account: text("cuenta", required), number: integer("movimiento", required), moment: moment("momento", required),
		kind: text("clase", required), centavos: integer("centavos", required), uses: integer("usos", required),
		balance: integer("saldo", required), org: text("org", optional), service: text("service", optional),
		record: text("verification_id", optional).distinct(),
		order:  text("lote_id", optional), from: integer("desde", optional), to: integer("hasta", optional),
		hold: integer("retencion", optional), until: moment("vence_retencion", optional),
		input: text("entrada_hmac", optional).distinct(), basis: text("base", optional),
		unit: integer("precio_unitario", optional), reason: text("motivo", optional),
		lot: integer("lote", required), part: integer("centavos", required), partUses: integer("usos", required),
	}
	plain := []*column{
		t.account, t.number, t.moment, t.kind, t.centavos, t.uses, t.balance, t.org, t.service,
		t.record, t.order, t.from, t.to, t.hold, t.until, t.input, t.basis, t.unit, t.reason,
	}
	lots, err := listOf("lotes", t.lot, t.part, t.partUses)
	if err != nil {
		return nil, err
	}
	t.table, err = newTable(f, movementsFile, append(fieldsOf(plain), lots), append(plain, t.lot, t.part, t.partUses))
	return t, err
}

// listOf is a list of structures.
func listOf(name string, members ...*column) (schema.Node, error) {
	element, err := schema.NewGroupNode("element", required, fieldsOf(members), -1)
	if err != nil {
		return nil, err
	}
	list, err := schema.NewGroupNode("list", parquet.Repetitions.Repeated, schema.FieldList{element}, -1)
	if err != nil {
		return nil, err
	}
	return schema.NewGroupNodeLogical(name, required, schema.FieldList{list}, schema.NewListLogicalType(), -1)
}

var kinds = map[ledger.Kind]string{
	ledger.KindCredit: "abono", ledger.KindCharge: "cargo", ledger.KindExpiry: "vencimiento", ledger.KindUse: "uso",
	ledger.KindHold: "retencion", ledger.KindRelease: "liberacion", ledger.KindOrder: "lote",
}

func (a *accountRows) movements(t *movementsTable) error {
	return a.v.Movements(a.account, func(m *ledger.Movement) error {
		if !a.wants(m.Org) {
			return nil
		}
		if err := a.step(); err != nil {
			return err
		}
		kind, known := kinds[m.Kind]
		if !known {
			kind = fmt.Sprintf("clase %d", m.Kind)
		}
		t.account.text(a.name)
		t.number.int(int64(m.Number))
		t.moment.int(m.Moment.UnixMicro())
		t.kind.text([]byte(kind))
		t.centavos.int(m.Centavos)
		t.uses.int(m.Uses)
		t.balance.int(m.Balance)
		if m.Org != 0 {
			t.org.text(a.org(m.Org))
		} else {
			t.org.null()
		}
		t.service.textOr(m.Service)
		if m.Kind == ledger.KindCharge || m.Kind == ledger.KindOrder {
			t.record.text([]byte(m.Record.String()))
		} else {
			t.record.null()
		}
		if m.Kind == ledger.KindOrder {
			t.order.text([]byte(m.Order.String()))
		} else {
			t.order.null()
		}
		t.from.intOr(int64(m.From))
		t.to.intOr(int64(m.To))
		t.hold.intOr(int64(m.Hold))
		if m.Until.IsZero() {
			t.until.null()
		} else {
			t.until.int(m.Until.UnixMicro())
		}
		if m.Input != ([sha256.Size]byte{}) {
			t.input.text(hex.AppendEncode(nil, m.Input[:]))
		} else {
			t.input.null()
		}
		t.basis.textOr(m.Basis)
		if m.Kind == ledger.KindCredit && m.Uses != 0 || m.Kind == ledger.KindOrder && m.Uses == 0 {
			t.unit.int(m.Unit) // also of uses that cost nothing
		} else {
			t.unit.null()
		}
		t.reason.textOr(m.Reason)
		if len(m.Lots) == 0 {
			t.lot.none()
			t.part.none()
			t.partUses.none()
		}
		for i, s := range m.Lots {
			t.lot.item(int64(s.Lot), i == 0)
			t.part.item(s.Centavos, i == 0)
			t.partUses.item(s.Uses, i == 0)
		}
		return t.end(len(m.Basis) + len(m.Reason))
	})
}

type usageTable struct {
	*table
	account, org, sandbox, day, service, answers, charged, centavos, uses *column
}

func newUsageTable(f *folder) (*usageTable, error) {
	t := &usageTable{
		account: text("cuenta", required), org: text("org", required), sandbox: boolean("sandbox"), day: day("dia", required),
		service: text("service", required), answers: integer("consultas", required), charged: integer("cobradas", required),
		centavos: integer("centavos", required), uses: integer("usos", required),
	}
	leaves := []*column{t.account, t.org, t.sandbox, t.day, t.service, t.answers, t.charged, t.centavos, t.uses}
	var err error
	t.table, err = newTable(f, usageFile, fieldsOf(leaves), leaves)
	return t, err
}

func (a *accountRows) usage(t *usageTable) error {
	return a.v.Usage(a.account, func(u ledger.Usage) error {
		if !a.wants(u.Org) {
			return nil
		}
		if err := a.step(); err != nil {
			return err
		}
		date := civil.Date{Year: int(u.Day / 10000), Month: time.Month(u.Day / 100 % 100), Day: int(u.Day % 100)}
		t.account.text(a.name)
		t.org.text(a.org(u.Org))
		t.sandbox.bool(u.Sandbox)
		t.day.day(epochDay(date))
		t.service.text([]byte(u.Service))
		t.answers.int(u.Answers)
		t.charged.int(u.Charged)
		t.centavos.int(u.Centavos)
		t.uses.int(u.Uses)
		return t.end(0)
	})
}
