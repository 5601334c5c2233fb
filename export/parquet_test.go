package export_test

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"

	"cotejo/accounts"
	"cotejo/export"
	"cotejo/ledger"
)

// readTable reads a file with the columnar reader: a line for each row, its cells
// joined by |, and the columns with their types. The cells of a list are joined by
// commas.
func readTable(t *testing.T, path string) (rows []string, schema string, groups int) {
	t.Helper()
	r, err := file.OpenParquetFile(path, false)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if by := r.MetaData().GetCreatedBy(); by != "cotejo" || len(r.MetaData().KeyValueMetadata()) > 0 {
		t.Errorf("%s: written by %q, %v", path, by, r.MetaData().KeyValueMetadata())
	}
	columns := r.MetaData().Schema
	for c := range columns.NumColumns() {
		d := columns.Column(c)
		schema += fmt.Sprintf("%s %v %v %v\n", d.Path(), d.SchemaNode().RepetitionType(), d.PhysicalType(), d.LogicalType())
	}
	for g := range r.NumRowGroups() {
		group := r.RowGroup(g)
		cells := make([]strings.Builder, group.NumRows())
		for c := range columns.NumColumns() {
			chunk, err := group.Column(c)
			if err != nil {
				t.Fatal(err)
			}
			for i, text := range readChunk(t, chunk, group.NumRows()) {
				cells[i].WriteString(text + "|")
			}
		}
		for i := range cells {
			rows = append(rows, cells[i].String())
		}
	}
	return rows, schema, r.NumRowGroups()
}

// readChunk returns a text for each row.
func readChunk(t *testing.T, chunk file.ColumnChunkReader, rows int64) (cells []string) {
	t.Helper()
	var defs, reps []int16
	var values []string
	switch r := chunk.(type) {
	case *file.ByteArrayColumnChunkReader:
		defs, reps, values = readValues(t, r, func(v parquet.ByteArray) string { return string(v) })
	case *file.Int64ColumnChunkReader:
		defs, reps, values = readValues(t, r, func(v int64) string { return fmt.Sprint(v) })
	case *file.Int32ColumnChunkReader:
		defs, reps, values = readValues(t, r, func(v int32) string { return time.Unix(int64(v)*86400, 0).UTC().Format(time.DateOnly) })
	case *file.BooleanColumnChunkReader:
		defs, reps, values = readValues(t, r, func(v bool) string { return fmt.Sprint(v) })
	default:
		t.Fatalf("column of %T", chunk)
	}
	most := chunk.Descriptor().MaxDefinitionLevel()
	list := chunk.Descriptor().MaxRepetitionLevel() > 0
	for i := range defs {
		text := "null"
		if defs[i] == most {
			text, values = values[0], values[1:]
		} else if list {
			text = ""
		}
		if list && reps[i] > 0 {
			cells[len(cells)-1] += "," + text
		} else {
			cells = append(cells, text)
		}
	}
	if int64(len(cells)) != rows || len(values) > 0 {
		t.Fatalf("%s: %d cells of %d rows, %d values left", chunk.Descriptor().Path(), len(cells), rows, len(values))
	}
	return cells
}

// readValues reads a chunk; a column without nulls has the level 0 throughout.
func readValues[T any](t *testing.T, r interface {
	ReadBatch(int64, []T, []int16, []int16) (int64, int, error)
	HasNext() bool
}, show func(T) string) (defs, reps []int16, values []string) {
	t.Helper()
	for r.HasNext() {
		const n = 1000
		var v [n]T
		var d, p [n]int16
		levels, count, err := r.ReadBatch(n, v[:], d[:], p[:])
		if err != nil {
			t.Fatal(err)
		}
		defs, reps = append(defs, d[:levels]...), append(reps, p[:levels]...)
		for _, x := range v[:count] {
			values = append(values, show(x))
		}
	}
	return defs, reps, values
}

func orNull(s string) string {
	if s == "" {
		return "null"
	}
	return s
}

func numberOrNull(n int64) string {
	if n == 0 {
		return "null"
	}
	return fmt.Sprint(n)
}

// rowsOf says what the tables must hold, from the ledger's own readings, of the
// organizations that are wanted.
func (b *book) rowsOf(wants func(ledger.OrgID) bool) (records, movements, usage []string) {
	b.t.Helper()
	var order []ledger.AccountID
	err := b.Records(func(account ledger.AccountID, r ledger.Record) error {
		if len(order) == 0 || order[len(order)-1] != account {
			order = append(order, account)
		}
		if !wants(r.Org) {
			return nil
		}
		batch := "null"
		if r.Ordinal != 0 {
			batch = r.Order.String()
		}
		records = append(records, fmt.Sprintf("%s|%s|%s|%v|COMPANY|COMPANY_OK|verificarEmpresa|%d|2026-11-20|COMPANY/2|%d|%s|%s|%s|%x|%x|%s|%s|",
			r.ID, accounts.FormatAccount(account), accounts.FormatOrg(r.Org), r.Sandbox, time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC).UnixMicro(),
			r.Centavos, numberOrNull(int64(r.Movement)), batch, numberOrNull(int64(r.Ordinal)), r.Edition, sha256.Sum256(r.Registro), r.Registro, r.Acta))
		return nil
	})
	if err != nil {
		b.t.Fatal(err)
	}
	kinds := []string{"", "abono", "cargo", "vencimiento", "uso", "retencion", "liberacion", "lote"}
	for _, account := range order {
		err := b.Movements(account, ledger.Page{}, func(m *ledger.Movement) error {
			if !wants(m.Org) {
				return nil
			}
			org, id, batch, until, input, unit := "null", "null", "null", "null", "null", "null"
			if m.Org != 0 {
				org = accounts.FormatOrg(m.Org)
			}
			if m.Kind == ledger.KindCharge {
				id = m.Record.String()
			}
			if m.Kind == ledger.KindOrder {
				id, batch, unit = m.Record.String(), m.Order.String(), fmt.Sprint(m.Unit)
			}
			if m.Kind == ledger.KindHold {
				until = fmt.Sprint(m.Until.UnixMicro())
			}
			if m.Kind == ledger.KindCredit && m.Service != "" {
				unit = fmt.Sprint(m.Unit)
			}
			if m.Input != ([32]byte{}) {
				input = fmt.Sprintf("%x", m.Input)
			}
			var lots, parts, uses []string
			for _, s := range m.Lots {
				lots, parts, uses = append(lots, fmt.Sprint(s.Lot)), append(parts, fmt.Sprint(s.Centavos)), append(uses, fmt.Sprint(s.Uses))
			}
			movements = append(movements, strings.Join([]string{
				accounts.FormatAccount(account), fmt.Sprint(m.Number), fmt.Sprint(m.Moment.UnixMicro()), kinds[m.Kind],
				fmt.Sprint(m.Centavos), fmt.Sprint(m.Uses), fmt.Sprint(m.Balance), org, orNull(m.Service),
				id, batch, numberOrNull(int64(m.From)), numberOrNull(int64(m.To)), numberOrNull(int64(m.Hold)), until, input, orNull(m.Basis), unit, orNull(m.Reason),
				strings.Join(lots, ","), strings.Join(parts, ","), strings.Join(uses, ","),
			}, "|")+"|")
			return nil
		})
		if err != nil {
			b.t.Fatal(err)
		}
		for _, org := range []ledger.OrgID{alfa, alfaTests, beta, gama} {
			err := b.Usage(account, org, org.Sandbox(), 0, 9999_12_31, func(u ledger.Usage) error {
				if day := fmt.Sprint(u.Day); wants(org) {
					usage = append(usage, fmt.Sprintf("%s|%s|%v|%s-%s-%s|%s|%d|%d|%d|%d|", accounts.FormatAccount(account), accounts.FormatOrg(org),
						org.Sandbox(), day[:4], day[4:6], day[6:], u.Service, u.Answers, u.Charged, u.Centavos, u.Uses))
				}
				return nil
			})
			if err != nil {
				b.t.Fatal(err)
			}
		}
	}
	return records, movements, usage
}

func same(t *testing.T, what string, got, want []string) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: %d rows, want %d", what, len(got), len(want))
	}
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			t.Errorf("%s: row %d\n%s\nwant\n%s", what, i, got[i], want[i])
		}
	}
}

// TestTablesHoldTheLedger reads the tables back and lays each row beside the
// ledger's.
func TestTablesHoldTheLedger(t *testing.T) {
	onEachEngine(t, testTables)
}

func testTables(t *testing.T, newBook func(*testing.T) *book) {
	b := newBook(t)
	b.trade()
	f := func(org ledger.OrgID, wants func(ledger.OrgID) bool, wantRecordCount, wantMovementCount, wantUsageCount int) {
		t.Helper()
		s := b.source()
		s.Org = org
		dir, m := b.exported(export.Parquet, s)
		wantRecords, wantMovements, wantUsage := b.rowsOf(wants)
		if len(wantRecords) != wantRecordCount || len(wantMovements) != wantMovementCount || len(wantUsage) != wantUsageCount {
			t.Fatalf("%d records, %d movements, %d counts: the test proves nothing", len(wantRecords), len(wantMovements), len(wantUsage))
		}
		movements, schema, _ := readTable(t, filepath.Join(dir, "movimientos.parquet"))
		same(t, "movimientos", movements, wantMovements)
		if want := `cuenta required BYTE_ARRAY String
movimiento required INT64 None
momento required INT64 Timestamp(isAdjustedToUTC=true, timeUnit=microseconds, is_from_converted_type=false, force_set_converted_type=false)
clase required BYTE_ARRAY String
centavos required INT64 None
usos required INT64 None
saldo required INT64 None
org optional BYTE_ARRAY String
service optional BYTE_ARRAY String
verification_id optional BYTE_ARRAY String
lote_id optional BYTE_ARRAY String
desde optional INT64 None
hasta optional INT64 None
retencion optional INT64 None
vence_retencion optional INT64 Timestamp(isAdjustedToUTC=true, timeUnit=microseconds, is_from_converted_type=false, force_set_converted_type=false)
entrada_hmac optional BYTE_ARRAY String
base optional BYTE_ARRAY String
precio_unitario optional INT64 None
motivo optional BYTE_ARRAY String
lotes.list.element.lote required INT64 None
lotes.list.element.centavos required INT64 None
lotes.list.element.usos required INT64 None
`; schema != want {
			t.Errorf("movimientos:\n%s", schema)
		}
		records, schema, _ := readTable(t, filepath.Join(dir, "registros.parquet"))
		same(t, "registros", records, wantRecords)
		if want := `verification_id required BYTE_ARRAY String
cuenta required BYTE_ARRAY String
org required BYTE_ARRAY String
sandbox required BOOLEAN None
service required BYTE_ARRAY String
result_code required BYTE_ARRAY String
operacion required BYTE_ARRAY String
consultado optional INT64 Timestamp(isAdjustedToUTC=true, timeUnit=microseconds, is_from_converted_type=false, force_set_converted_type=false)
fecha optional INT32 Date
motor optional BYTE_ARRAY String
centavos required INT64 None
movimiento optional INT64 None
lote_id optional BYTE_ARRAY String
posicion optional INT64 None
edicion_sha256 required BYTE_ARRAY String
registro_sha256 required BYTE_ARRAY String
registro required BYTE_ARRAY String
acta required BYTE_ARRAY String
`; schema != want {
			t.Errorf("registros:\n%s", schema)
		}
		uses, schema, _ := readTable(t, filepath.Join(dir, "uso.parquet"))
		same(t, "uso", uses, wantUsage)
		if want := `cuenta required BYTE_ARRAY String
org required BYTE_ARRAY String
sandbox required BOOLEAN None
dia required INT32 Date
service required BYTE_ARRAY String
consultas required INT64 None
cobradas required INT64 None
centavos required INT64 None
usos required INT64 None
`; schema != want {
			t.Errorf("uso:\n%s", schema)
		}
		rows := map[string]int{"registros.parquet": len(records), "movimientos.parquet": len(movements), "uso.parquet": len(uses)}
		for _, f := range m.Files {
			if f.Rows != int64(rows[f.Path]) {
				t.Errorf("%+v, read %d rows", f, rows[f.Path])
			}
		}
	}
	f(0, func(ledger.OrgID) bool { return true }, 26, 29, 15)
	f(alfa, func(o ledger.OrgID) bool { return o == alfa || o == alfaTests }, 11, 8, 8)
	f(alfaTests, func(o ledger.OrgID) bool { return o == alfaTests }, 1, 0, 2)
	f(beta, func(o ledger.OrgID) bool { return o == beta }, 6, 11, 3)
	f(gama, func(o ledger.OrgID) bool { return o == gama }, 9, 9, 4)
	f(beta+4, func(ledger.OrgID) bool { return false }, 0, 0, 0)
}

// TestRowsOfEveryKind names rows of each kind as they must stand, to the last
// column.
func TestRowsOfEveryKind(t *testing.T) {
	b := newBook(t)
	b.trade()
	dir, _ := b.exported(export.Parquet, b.source())
	has := func(file string, want ...string) {
		t.Helper()
		rows, _, _ := readTable(t, filepath.Join(dir, file))
		for _, row := range want {
			if !slices.Contains(rows, row) {
				t.Errorf("%s has no row\n%s\n\nbut\n%s", file, row, strings.Join(rows, "\n"))
			}
		}
	}
	const noon, one = "1795176000123456", "1795179600123456"
	const a, c = "cta_000000000000B|", "cta_000000000000C|"
	has("movimientos.parquet",
		a+"1|"+noon+"|abono|5000|0|5000|org_0000000000002|null|null|null|null|null|null|null|null|null|null|transferencia 1234|1|5000|0|",
		a+"12|"+noon+"|uso|-50|0|3450|org_0000000000002|NOMINA|null|null|null|null|null|null|2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881|uma-2026@1|null|null|1|50|0|",
		a+"14|"+noon+"|abono|0|2|3410|org_0000000000004|SCREEN|null|null|null|null|null|null|null|null|900|dos usos|14|0|2|",
		a+"15|"+noon+"|retencion|0|0|3410|org_0000000000004|SCREEN|null|null|null|null|null|"+one+"|null|null|null|null|14,1|0,700|2,0|",
		a+"16|"+noon+"|uso|0|-1|3410|org_0000000000004|SCREEN|null|null|null|null|15|null|null|null|null|null|14|0|1|",
		a+"17|"+noon+"|liberacion|0|0|3410|org_0000000000004|SCREEN|null|null|null|null|15|null|null|null|null|null|14,1|0,700|1,0|",
		a+"18|"+noon+"|abono|0|1|3410|org_0000000000004|COMPANY|null|null|null|null|null|null|null|null|0|cortesía|18|0|1|",
		c+"5|1826715600123456|vencimiento|-8600|0|0|null|null|null|null|null|null|null|null|null|null|null|null|1|8600|0|",
	)
	has("uso.parquet",
		a+"org_0000000000002|false|2026-11-20|UTIL|1|0|0|0|",
		a+"org_0000000000003|true|2026-11-20|COMPANY|1|0|0|0|",
		a+"org_0000000000004|false|2026-11-20|COMPANY|6|5|600|1|",
		a+"org_0000000000004|false|2026-11-20|UTIL|1|1|40|0|",
		c+"org_0000000000006|false|2028-12-31|LEGAL|2|0|0|0|",
	)
	// Of a charge, with the id that its record was given.
	movements, _, _ := readTable(t, filepath.Join(dir, "movimientos.parquet"))
	records, _, _ := readTable(t, filepath.Join(dir, "registros.parquet"))
	at := slices.IndexFunc(records, func(row string) bool { return strings.Contains(row, "USO010101AA1") })
	id, _, _ := strings.Cut(records[at], "|")
	if want := a + "19|" + noon + "|cargo|0|-1|3410|org_0000000000004|COMPANY|" + id + "|null|null|null|null|null|null|null|null|null|18|0|1|"; movements[18] != want ||
		!strings.Contains(records[at], "|COMPANY/2|0|19|null|null|") {
		t.Errorf("paid with a use:\n%s\n%s", movements[18], records[at])
	}
	// Of an order, with its first record.
	at = slices.IndexFunc(records, func(row string) bool { return strings.Contains(row, "LOT010101AA1") })
	id, _, _ = strings.Cut(records[at], "|")
	columns := strings.Split(records[at], "|")
	if want := c + "9|1826715600123456|lote|-200|0|400|org_0000000000006|COMPANY|" + id + "|" + columns[12] + "|1|2|8|null|null|null|100|null|6|200|0|"; !slices.Contains(movements, want) ||
		!strings.HasPrefix(columns[12], "LOT-") || !strings.Contains(records[at], "|COMPANY/2|100|9|"+columns[12]+"|1|") {
		t.Errorf("two of an order: no row %s\n%s\n%s", want, strings.Join(movements, "\n"), records[at])
	}
}

// TestRowGroupsAreBounded writes more rows, and more bytes, than one row group may
// have.
func TestRowGroupsAreBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("110,000 rows")
	}
	b := newBook(t)
	b.do(11, ledger.Credit{Now: start, Org: alfa, Centavos: 5_000, Reason: "abono"})
	const large = 40
	for i := range large {
		b.charge(11, alfa, start, 1, false, fmt.Sprintf("%09d", i)+strings.Repeat("A", 1_000_000))
	}
	const uses = 70_000
	for i := range uses {
		b.CountUse(11, ledger.OrgID(2*(1+i%1000)), false, fmt.Sprintf("S%05d", i), 20261120)
	}
	b.reopen()
	dir, _ := b.exported(export.Parquet, b.source())
	records, _, groups := readTable(t, filepath.Join(dir, "registros.parquet"))
	want, _, _ := b.rowsOf(func(ledger.OrgID) bool { return true })
	same(t, "registros", records, want)
	if len(records) != large || groups != 5 {
		t.Errorf("%d records in %d row groups", len(records), groups)
	}
	rows, _, groups := readTable(t, filepath.Join(dir, "uso.parquet"))
	seen := map[string]bool{}
	for _, r := range rows {
		seen[r] = true
	}
	if len(seen) != uses+1 || groups != 2 {
		t.Errorf("%d uses in %d row groups", len(seen), groups)
	}
}

// TestAnEmptyLedgerIsThreeEmptyTables can be read like any other.
func TestAnEmptyLedgerIsThreeEmptyTables(t *testing.T) {
	b := newBook(t)
	dir, _ := b.exported(export.Parquet, b.source())
	for _, name := range []string{"registros.parquet", "movimientos.parquet", "uso.parquet"} {
		if rows, _, groups := readTable(t, filepath.Join(dir, name)); len(rows) != 0 || groups != 0 {
			t.Errorf("%s: %d rows in %d groups", name, len(rows), groups)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "MANIFIESTO.json")); err != nil {
		t.Error(err)
	}
}
