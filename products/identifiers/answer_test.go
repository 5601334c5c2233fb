package identifiers

import (
	"bytes"
	"encoding/json"
	"testing"

	"cotejo/catalog"
	"cotejo/checks"
	"cotejo/civil"
)

var today = civil.Date{Year: 2026, Month: 11, Day: 20}

// TestValidAnswerAllocatesNothing: reading and answering a well-formed identifier
// takes the caller's buffer alone.
func TestValidAnswerAllocatesNothing(t *testing.T) {
	dst := make([]byte, 0, 4<<10)
	f := func(name string, answer func() ([]byte, error)) {
		t.Helper()
		n := testing.AllocsPerRun(100, func() {
			got, err := answer()
			if err != nil || len(got) == 0 {
				t.Fatal(err)
			}
		})
		if n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
	banks := new(book)
	f("CLABE", func() ([]byte, error) {
		id, changes, err := checks.ReadCLABE("002010077777777771")
		return banks.names(catalog.Embedded()).appendCLABE(dst, reading[checks.CLABE]{id, changes}), err
	})
	f("CLABE of a bank and a plaza that nobody lists", func() ([]byte, error) {
		id, changes, err := checks.ReadCLABE("000000077777777770")
		return banks.names(catalog.Embedded()).appendCLABE(dst, reading[checks.CLABE]{id, changes}), err
	})
	f("RFC", func() ([]byte, error) {
		id, changes, err := checks.ReadRFC("MHTR93041179A")
		return appendRFC(dst, reading[checks.RFC]{id, changes}, today), err
	})
	f("CURP", func() ([]byte, error) {
		id, changes, err := checks.ReadCURP("GOMC000229XDFMRRA3")
		return appendCURP(dst, reading[checks.CURP]{id, changes}, today), err
	})
	f("NSS", func() ([]byte, error) {
		id, changes, err := checks.ReadNSS("72795608040")
		return appendNSS(dst, reading[checks.NSS]{id, changes}, today), err
	})
	f("card", func() ([]byte, error) {
		card, changes, err := checks.ReadCard("4012 8888 8888 1881")
		if changes != checks.Blanks {
			t.Fatal(changes)
		}
		return appendCard(dst, reading[checks.Card]{id: card}), err
	})
}

// TestNamesFollowTheSet: each question is answered from the set of its moment,
// whose names are written once.
func TestNamesFollowTheSet(t *testing.T) {
	first, second := *catalog.Embedded(), *catalog.Embedded()
	plazas, err := catalog.ReadPlazas([]byte("# id: clabe_plazas\n# fuente: prueba\n# version: 2026-05-01\nplaza,poblacion,estado\n011,Asientos,\n"))
	if err != nil {
		t.Fatal(err)
	}
	second.Plazas = plazas
	b := new(book)
	id, _, err := checks.ReadCLABE("002010077777777771")
	if err != nil {
		t.Fatal(err)
	}
	of := func(n *names) bool {
		return bytes.Contains(n.appendCLABE(nil, reading[checks.CLABE]{id: id}), []byte(`"Aguascalientes"`))
	}
	n := b.names(&first)
	if !of(n) || b.names(&first) != n {
		t.Error("the names of one set are written twice, or wrong")
	}
	if of(b.names(&second)) {
		t.Error("a set that was replaced still answers")
	}
	if !of(n) {
		t.Error("names changed while they were used")
	}
	loaded, included := b.names(&second), b.names(catalog.Embedded())
	if b.names(&second) != loaded || b.names(catalog.Embedded()) != included {
		t.Error("live and test keys make each other's names be written again")
	}
}

// TestObservations: what is odd is said, and decides nothing.
func TestObservations(t *testing.T) {
	f := func(answer []byte, valid bool, codes ...string) {
		t.Helper()
		var got struct {
			Valido        bool
			Observaciones []struct{ Codigo, Mensaje string }
		}
		if err := json.Unmarshal(append(append([]byte{'{'}, answer...), '}'), &got); err != nil {
			t.Fatalf("%s: %v", answer, err)
		}
		if got.Valido != valid || len(got.Observaciones) != len(codes) {
			t.Fatalf("%s: want valido %t and %v", answer, valid, codes)
		}
		for i, o := range got.Observaciones {
			if o.Codigo != codes[i] || o.Mensaje == "" {
				t.Errorf("%s: observation %d is %+v, want %s", answer, i, o, codes[i])
			}
		}
	}
	rfc := func(text string, day civil.Date) []byte {
		id, changes, err := checks.ReadRFC(text)
		if err != nil {
			t.Fatal(err)
		}
		return appendRFC(nil, reading[checks.RFC]{id, changes}, day)
	}
	curp := func(text string, day civil.Date) []byte {
		id, changes, err := checks.ReadCURP(text)
		if err != nil {
			t.Fatal(err)
		}
		return appendCURP(nil, reading[checks.CURP]{id, changes}, day)
	}
	f(rfc("EFO010101AA1", today), true)
	f(rfc("XAXX010101000", today), true, noteGeneric) // its digit differs, and that says nothing
	f(rfc("XEXX010101000", today), true, noteGeneric)
	f(rfc("SEN010101AA1", today), true, noteDigit)
	f(rfc("PEDO800101AA1", today), true, noteDigit, noteWord)
	f(curp("GOMC000229XDFMRRA3", today), true)
	f(curp("GOMC000229XDFMRRA4", today), false)
	f(curp("GOMC000229XDFMRRA3", civil.Date{Year: 2000, Month: 2, Day: 29}), true)
	f(curp("GOMC000229XDFMRRA3", civil.Date{Year: 2000, Month: 2, Day: 28}), true, noteFuture)
}
