package ledger

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"cotejo/store"
)

func testPermutation(t testing.TB) *permutation {
	t.Helper()
	key := make([]byte, 32)
	for i := range key {
		key[i] = byte(i)
	}
	p, err := newPermutation(key)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestPermutationNeverChanges: ids in the world depend on these values.
func TestPermutationNeverChanges(t *testing.T) {
	p := testPermutation(t)
	f := func(prefix string, day, counter uint32, want string) {
		t.Helper()
		id := VerificationID{prefix, day, counter, p.code(prefix, day, counter)}
		if id.String() != want {
			t.Errorf("counter %d prints %s, want %s", counter, id, want)
		}
		if back, ok := p.parse(want); !ok || back != id {
			t.Errorf("parse(%s) = %+v, %v; want %+v", want, back, ok, id)
		}
	}
	f("COM", 20261120, 0, "COM-20261120-5048516b")
	f("COM", 20261120, 1, "COM-20261120-2031a33a")
	f("COM", 20261121, 1, "COM-20261121-ff5651b2")
	f("SPE", 20261120, 1, "SPE-20261120-70515a69")
	f("COM", 20261120, 1<<32-1, "COM-20261120-484038fd")
}

func TestPermutationIsOneToOne(t *testing.T) {
	p := testPermutation(t)
	seen := map[uint32]bool{}
	ascending := 0
	last := uint32(0)
	for n := range uint32(100_000) {
		counter := n * 42_949 // over the whole range
		code := p.code("COM", 20261120, counter)
		if seen[code] {
			t.Fatalf("code %08x given twice", code)
		}
		seen[code] = true
		if p.counter("COM", 20261120, code) != counter {
			t.Fatalf("code %08x does not lead back to %d", code, counter)
		}
		if code > last {
			ascending++
		}
		last = code
	}
	if ascending < 49_000 || ascending > 51_000 {
		t.Errorf("codes follow the counter: %d of 100000 ascend", ascending)
	}
}

func TestParseIDIsStrict(t *testing.T) {
	p := testPermutation(t)
	f := func(s string) {
		t.Helper()
		if id, ok := p.parse(s); ok {
			t.Errorf("parse(%q) = %+v", s, id)
		}
	}
	f("")
	f("COM-20261120-0123456")
	f("COM-20261120-012345678")
	f("COM-20261120-0123456G")
	f("COM-20261120-0123456A") // hex is lower case
	f("com-20261120-01234567")
	f("CÑ-20261120-01234567")
	f("COM_20261120-01234567")
	f("COM-20261120_01234567")
	f("COM-20260230-01234567") // no such day
	f("COM-20261301-01234567")
	f("COM-00000101-01234567")
	f("COM-2026112０-0123456")
	f("COM-20261120-+1234567")
	f(" COM-20261120-0123456")
	if _, ok := p.parse("COM-20240229-01234567"); !ok {
		t.Error("a leap day is a day")
	}
}

func FuzzParseID(f *testing.F) {
	p := testPermutation(f)
	f.Add("COM-20261120-01234567")
	f.Add("SPE-20240229-ffffffff")
	f.Add("COM-20260230-01234567")
	f.Fuzz(func(t *testing.T, s string) {
		if id, ok := p.parse(s); ok && (id.String() != s || p.code(id.Prefix, id.Day, id.Counter) != id.Code) {
			t.Errorf("parse(%q) = %+v, which prints %q", s, id, id)
		}
	})
}

func openTest(t testing.TB) (*Ledger, store.Store) {
	t.Helper()
	s, err := store.OpenPebble("datos", store.PebbleOptions{FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	l, err := Open(s, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(l.Close(), s.Close()); err != nil {
			t.Error(err)
		}
	})
	return l, s
}

// setLease puts a prefix where a long day would have brought it.
type setLease struct {
	prefix string
	lease
}

func (c setLease) Apply(tx *Tx) (Result, error) {
	tx.put(spaceLease, []byte(c.prefix), c.lease.append(nil))
	return nil, nil
}

// raw writes a ledger value as it is.
type raw struct {
	space      Space
	key, value []byte
}

func (c raw) Apply(tx *Tx) (Result, error) {
	tx.put(c.space, c.key, c.value)
	return nil, nil
}

type erase struct {
	space Space
	key   []byte
}

func (c erase) Apply(tx *Tx) (Result, error) {
	tx.key = appendKey(tx.key[:0], tx.account, c.space, c.key)
	tx.seq.pending.set(tx.key, nil, true)
	return nil, nil
}

func do(t testing.TB, l *Ledger, account AccountID, cmd Command) Result {
	t.Helper()
	res, err := l.Do(context.Background(), account, cmd)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

var noon = time.Date(2026, 11, 20, 18, 0, 0, 0, time.UTC)

func TestIDLeases(t *testing.T) {
	l, _ := openTest(t)
	next := func(now time.Time) (VerificationID, error) { return l.NextID(context.Background(), "COM", now) }
	want := func(now time.Time, day, counter uint32) {
		t.Helper()
		id, err := next(now)
		if err != nil || id.Day != day || id.Counter != counter {
			t.Errorf("NextID = %+v, %v; want day %d counter %d", id, err, day, counter)
		}
	}
	want(noon, 20261120, 0)
	want(noon, 20261120, 1)
	want(noon.Add(24*time.Hour), 20261121, 0)
	want(noon, 20261121, 1) // the clock went back: the day does not
	want(time.Date(2026, 11, 22, 5, 59, 59, 0, time.UTC), 20261121, 2)
	want(time.Date(2026, 11, 22, 6, 0, 0, 0, time.UTC), 20261122, 0) // midnight in Mexico City
	for range leaseLength - 1 {
		if _, err := next(noon); err != nil {
			t.Fatal(err)
		}
	}
	want(noon, 20261122, leaseLength) // the second block of the day

	do(t, l, Global, setLease{"COM", lease{20261123, idsADay - leaseLength}})
	day := time.Date(2026, 11, 23, 18, 0, 0, 0, time.UTC)
	want(day, 20261123, idsADay-leaseLength)
	for range leaseLength - 1 {
		if _, err := next(day); err != nil {
			t.Fatal(err)
		}
	}
	if id, err := next(day); !errors.Is(err, ErrExhausted) {
		t.Errorf("after the last id of the day: %+v, %v; want ErrExhausted", id, err)
	}
	want(day.Add(24*time.Hour), 20261124, 0)

	for _, prefix := range []string{"", "CO", "com", "C0M", "COMP"} {
		if _, err := l.NextID(context.Background(), prefix, noon); err == nil {
			t.Errorf("prefix %q was accepted", prefix)
		}
	}
}

func testRecord(t testing.TB, l *Ledger, note string) Record {
	t.Helper()
	id, err := l.NextID(context.Background(), "COM", noon)
	if err != nil {
		t.Fatal(err)
	}
	registro := []byte(`{"entrada":{"rfc":"AAA010101AAA"},"fecha":"2026-11-20","motor":"COMPANY/1","nota":"` + note + `"}`)
	return Record{ID: id, Org: 1, Service: "COMPANY", Code: "COMPANY_OK", Operation: "company", Edition: [32]byte{1}, Registro: registro,
		Acta: fmt.Appendf(nil, `{"registro_sha256":"%x","verification_id":"%s"}`, sha256.Sum256(registro), id)}
}

func storedRecord(t *testing.T, l *Ledger, account AccountID, r Record) []byte {
	t.Helper()
	v, err := l.Read(account).Get(spaceRecord, appendRecordKey(nil, r.Org, r.Sandbox, r.ID))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// TestRecordsAreCodedAgainstTheFirst: the second record of an operation and
// edition is small, in its own account only, and both read back exactly.
func TestRecordsAreCodedAgainstTheFirst(t *testing.T) {
	l, s := openTest(t)
	long := strings.Repeat("una respuesta larga y siempre igual, ", 60)
	first, second := testRecord(t, l, long+"1"), testRecord(t, l, long+"2")
	do(t, l, 1, Charge{Now: noon, Record: first, Sum: sumOf(first)})
	do(t, l, 1, Charge{Now: noon, Record: second, Sum: sumOf(second)})
	for _, r := range []Record{first, second} {
		if n := len(storedRecord(t, l, 1, r)); n > 300 {
			t.Errorf("%v takes %d bytes for a text of %d", r.ID, n, len(r.Registro)+len(r.Acta))
		}
		got, err := l.Find(1, 1, false, r.ID)
		if err != nil || !bytes.Equal(got.Registro, r.Registro) || !bytes.Equal(got.Acta, r.Acta) {
			t.Errorf("Find(%v) = %+v, %v", r.ID, got, err)
		}
	}
	third := testRecord(t, l, long+"3")
	do(t, l, 2, Charge{Now: noon, Record: third, Sum: sumOf(third)})
	dictionaries := map[AccountID]int{}
	for a := range AccountID(3) {
		if err := l.Read(a).Scan(spaceDictionary, nil, func(k, v []byte) error { dictionaries[a]++; return nil }); err != nil {
			t.Fatal(err)
		}
	}
	if dictionaries[1] != 1 || dictionaries[2] != 1 {
		t.Errorf("dictionaries by account: %v; want one in each", dictionaries)
	}
	if _, err := Check(context.Background(), s); err != nil {
		t.Error(err)
	}
}

// TestDictionaryRace: of two records that both mean to be the first, one becomes
// the dictionary and the other is stored plainly; both read back.
func TestDictionaryRace(t *testing.T) {
	l, s := openTest(t)
	a, b := testRecord(t, l, "a"), testRecord(t, l, "b")
	pa, err := Charge{Now: noon, Record: a, Sum: sumOf(a)}.prepare(l, 1)
	if err != nil {
		t.Fatal(err)
	}
	pb, err := Charge{Now: noon, Record: b, Sum: sumOf(b)}.prepare(l, 1)
	if err != nil {
		t.Fatal(err)
	}
	do(t, l, 1, pa)
	do(t, l, 1, pb)
	for _, r := range []Record{a, b} {
		got, err := l.Find(1, 1, false, r.ID)
		if err != nil || !bytes.Equal(got.Registro, r.Registro) || got.Operation != "company" || got.Edition != r.Edition {
			t.Errorf("Find(%v) = %+v, %v", r.ID, got, err)
		}
	}
	if _, err := Check(context.Background(), s); err != nil {
		t.Error(err)
	}
}

// TestDictionaryCacheIsBounded: many editions do not stay in memory.
func TestDictionaryCacheIsBounded(t *testing.T) {
	l, _ := openTest(t)
	note := strings.Repeat("x", 20<<10)
	for edition := range byte(80) {
		for range 2 {
			r := testRecord(t, l, note)
			r.Edition[0] = edition
			do(t, l, 1, Charge{Now: noon, Record: r, Sum: sumOf(r)})
		}
	}
	sum := 0
	for _, d := range l.bases.known {
		sum += len(d.text)
	}
	if sum != l.bases.bytes || sum > cachedText || sum == 0 {
		t.Errorf("%d bytes of text in memory, counted %d, bound %d", sum, l.bases.bytes, cachedText)
	}
}

func TestHotValuesAreBounded(t *testing.T) {
	h := hotValues{budget: 1000}
	for i := range 100 {
		h.put(fmt.Appendf(nil, "key%d", i), make([]byte, i))
		h.put(fmt.Appendf(nil, "key%d", i), make([]byte, i+1))
		sum := 0
		for k, v := range h.values {
			sum += len(k) + len(v) + hotOverhead
		}
		if sum != h.bytes || sum > 1000 || len(h.values) == 0 {
			t.Fatalf("%d bytes in %d values, counted %d", sum, len(h.values), h.bytes)
		}
	}
	h.put([]byte("key99"), make([]byte, 2000))
	if _, ok := h.get([]byte("key99")); ok {
		t.Error("a value beyond the budget stayed, or an old one in its place")
	}
}

func sumOf(r Record) [sha256.Size]byte { return sha256.Sum256(r.Registro) }

func TestLotsAreLimited(t *testing.T) {
	l, s := openTest(t)
	for range maxLots {
		do(t, l, 1, Credit{Now: noon, Org: 1, Centavos: 1})
	}
	if _, err := l.Do(context.Background(), 1, Credit{Now: noon, Org: 1, Centavos: 1}); err == nil {
		t.Error("lot 1001 was opened")
	}
	lots := testRecord(t, l, "x")
	res := do(t, l, 1, Charge{Now: noon, Record: lots, Sum: sumOf(lots), Price: maxLots})
	if got := res.(Charged); got.Balance != 0 || got.Movement != maxLots+1 {
		t.Errorf("a charge over all lots: %+v", got)
	}
	if _, err := Check(context.Background(), s); err != nil {
		t.Error(err)
	}
}

// TestCheckFindsFaults breaks a good ledger in one place at a time.
func TestCheckFindsFaults(t *testing.T) {
	f := func(what string, damage func(t *testing.T, l *Ledger, paid, free Record)) {
		t.Run(what, func(t *testing.T) {
			l, s := openTest(t)
			do(t, l, 1, Credit{Now: noon, Org: 1, Centavos: 1000})
			do(t, l, 1, Credit{Now: noon.Add(time.Hour), Org: 1, Centavos: 1000})
			paid, free := testRecord(t, l, "pagada"), testRecord(t, l, "gratis")
			do(t, l, 1, Charge{Now: noon, Record: paid, Sum: sumOf(paid), Price: 1200})
			do(t, l, 1, Charge{Now: noon, Record: free, Sum: sumOf(free)})
			if rep, err := Check(context.Background(), s); err != nil || rep.Balance != 800 {
				t.Fatalf("before the damage: %+v, %v", rep, err)
			}
			damage(t, l, paid, free)
			rep, err := Check(context.Background(), s)
			if !errors.Is(err, ErrIntegrity) || len(rep.Violations) == 0 {
				t.Errorf("Check = %+v, %v; want ErrIntegrity", rep, err)
			}
		})
	}
	movement := func(t *testing.T, l *Ledger, number uint64) Movement {
		v, err := l.Read(1).Get(spaceMovement, movementKey(number))
		if err != nil {
			t.Fatal(err)
		}
		m := Movement{Number: number}
		if err := m.decode(v); err != nil {
			t.Fatal(err)
		}
		m.Number = number
		return m
	}
	change := func(number uint64, edit func(*Movement)) func(*testing.T, *Ledger, Record, Record) {
		return func(t *testing.T, l *Ledger, _, _ Record) {
			m := movement(t, l, number)
			edit(&m)
			do(t, l, 1, raw{spaceMovement, movementKey(number), m.append(nil)})
		}
	}
	f("a centavo more in the wallet", func(t *testing.T, l *Ledger, _, _ Record) {
		w := wallet{last: 3, day: 20261120, lots: []Lot{{2, "", 801, noon.Add(time.Hour + LotLife)}}}
		do(t, l, 1, raw{spaceWallet, nil, w.append(nil)})
	})
	f("a later expiry", func(t *testing.T, l *Ledger, _, _ Record) {
		w := wallet{last: 3, day: 20261120, lots: []Lot{{2, "", 800, noon.Add(2*time.Hour + LotLife)}}}
		do(t, l, 1, raw{spaceWallet, nil, w.append(nil)})
	})
	f("a movement gone", func(t *testing.T, l *Ledger, _, _ Record) { do(t, l, 1, erase{spaceMovement, movementKey(3)}) })
	f("a gap", func(t *testing.T, l *Ledger, _, _ Record) { do(t, l, 1, erase{spaceMovement, movementKey(1)}) })
	f("the wallet gone", func(t *testing.T, l *Ledger, _, _ Record) { do(t, l, 1, erase{spaceWallet, nil}) })
	f("a charged record gone", func(t *testing.T, l *Ledger, paid, _ Record) {
		do(t, l, 1, erase{spaceRecord, appendRecordKey(nil, 1, false, paid.ID)})
	})
	f("the dictionary gone", func(t *testing.T, l *Ledger, paid, _ Record) {
		key := nameKey(paid.Operation, paid.Edition)
		do(t, l, 1, erase{spaceDictionary, key[:]})
	})
	f("a cut record", func(t *testing.T, l *Ledger, _, free Record) {
		v := storedRecord(t, l, 1, free)
		do(t, l, 1, raw{spaceRecord, appendRecordKey(nil, 1, false, free.ID), v[:len(v)-1]})
	})
	f("a free record that claims a movement", func(t *testing.T, l *Ledger, paid, free Record) {
		free.Centavos, free.Movement = 1200, 3
		text := append(append([]byte(nil), free.Registro...), free.Acta...)
		do(t, l, 1, raw{spaceRecord, appendRecordKey(nil, 1, false, free.ID), free.append(nil, nil, plain.Append(nil, text))})
	})
	f("another registro", func(t *testing.T, l *Ledger, _, free Record) {
		text := append(bytes.Replace(free.Registro, []byte("gratis"), []byte("GRATIS"), 1), free.Acta...)
		do(t, l, 1, raw{spaceRecord, appendRecordKey(nil, 1, false, free.ID), free.append(nil, nil, plain.Append(nil, text))})
	})
	f("a record under another id", func(t *testing.T, l *Ledger, _, free Record) {
		v := storedRecord(t, l, 1, free)
		do(t, l, 1, erase{spaceRecord, appendRecordKey(nil, 1, false, free.ID)})
		free.ID.Counter = 77
		do(t, l, 1, raw{spaceRecord, appendRecordKey(nil, 1, false, free.ID), v})
	})
	f("a lease forgotten", func(t *testing.T, l *Ledger, _, _ Record) {
		do(t, l, Global, setLease{"COM", lease{20261120, 0}})
	})
	f("another amount", change(3, func(m *Movement) { m.Centavos-- }))
	f("another balance", change(3, func(m *Movement) { m.Balance++ }))
	f("another record", change(3, func(m *Movement) { m.Record.Counter++ }))
	f("the newer lot first", change(3, func(m *Movement) { m.Lots = []Split{{Lot: 2, Centavos: 1000}, {Lot: 1, Centavos: 200}} }))
	f("an expired lot spent", change(3, func(m *Movement) { m.Moment = noon.Add(LotLife) }))
	row := func(u Usage) []byte {
		return appendUsageKey(nil, u.Org, u.Sandbox, u.Day, u.Service)
	}
	today := Usage{Org: 1, Day: 20261120, Service: "COMPANY", Answers: 2, Charged: 1, Centavos: 1200}
	f("the count of a day gone", func(t *testing.T, l *Ledger, _, _ Record) { do(t, l, 1, erase{spaceUsage, row(today)}) })
	count := func(edit func(*Usage)) func(*testing.T, *Ledger, Record, Record) {
		return func(t *testing.T, l *Ledger, _, _ Record) {
			u := today
			edit(&u)
			do(t, l, 1, raw{spaceUsage, row(u), u.append(nil)})
		}
	}
	f("an answer more charged", count(func(u *Usage) { u.Charged++ }))
	f("a centavo less counted", count(func(u *Usage) { u.Centavos-- }))
	f("a use that nobody had", count(func(u *Usage) { u.Uses++ }))
	f("an answer less than records", count(func(u *Usage) { u.Answers-- }))
	f("a charge in the sandbox", count(func(u *Usage) { u.Sandbox = true }))
	f("the note of a day gone", func(t *testing.T, l *Ledger, _, _ Record) {
		do(t, l, 1, erase{spaceDay, binary.BigEndian.AppendUint32(nil, 20261120)})
	})
	f("the note of a day that is none", func(t *testing.T, l *Ledger, _, _ Record) {
		do(t, l, 1, raw{spaceDay, binary.BigEndian.AppendUint32(nil, 20261119), []byte{schema, 1}})
	})
	f("uses come from nowhere", func(t *testing.T, l *Ledger, _, _ Record) {
		w := wallet{last: 3, day: 20261120, lots: []Lot{{1, "COMPANY", 1, noon.Add(LotLife)}, {2, "", 800, noon.Add(time.Hour + LotLife)}}}
		do(t, l, 1, raw{spaceWallet, nil, w.append(nil)})
	})
	f("money paid while there was a use", change(1, func(m *Movement) {
		m.Service, m.Centavos, m.Uses, m.Lots = "COMPANY", 0, 1000, []Split{{Lot: 1, Uses: 1000}}
	}))
	f("an unknown kind", change(3, func(m *Movement) { m.Kind = 9 }))
}

func FuzzStoredValues(f *testing.F) {
	p := testPermutation(f)
	m := Movement{Number: 3, Moment: noon, Kind: KindCharge, Centavos: -5, Lots: []Split{{1, 5, 0}}, Service: "COMPANY",
		Record: VerificationID{Prefix: "COM", Day: 20261120, Counter: 9}}
	w := wallet{last: 9, lots: []Lot{{7, "UTIL", 500, noon}}, holds: []hold{{8, 1, "UTIL", noon, []Lot{{6, "UTIL", 3, noon}, {5, "", 3, noon}}}}}
	r := Record{Org: 1, Service: "COMPANY", Code: "COMPANY_OK", Operation: "company", Registro: []byte("{}"), Acta: []byte("[]")}
	f.Add(m.append(nil))
	f.Add(w.append(nil))
	f.Add(r.append(nil, nil, plain.Append(nil, []byte("{}[]"))))
	f.Add([]byte{schema, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	key := appendRecordKey(nil, 1, false, m.Record)
	f.Fuzz(func(t *testing.T, value []byte) {
		var m Movement
		if m.decode(value) == nil && m.Kind == KindCharge && len(m.Record.Prefix) != 3 {
			t.Errorf("a movement with a prefix of %d bytes", len(m.Record.Prefix))
		}
		var w wallet
		if w.decode(value) == nil {
			var again wallet
			if err := again.decode(w.append(nil)); err != nil || len(again.lots) != len(w.lots) || len(again.holds) != len(w.holds) || again.last != w.last {
				t.Errorf("a wallet does not survive: %+v, %+v, %v", w, again, err)
			}
		}
		r, err := decodeRecord(key, value, p, func(dictionaryKey) (*dictionaryText, error) {
			return &dictionaryText{text: []byte("un texto del que se copia")}, nil
		})
		if err == nil && (len(r.Registro) > maxRegistro || len(r.Acta) > maxActa) {
			t.Errorf("a record of %d and %d bytes", len(r.Registro), len(r.Acta))
		}
	})
}
