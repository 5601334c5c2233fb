package identifiers

import (
	"encoding/json"
	"testing"

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
	f("CLABE", func() ([]byte, error) {
		id, changes, err := checks.ReadCLABE("002010077777777771")
		return appendCLABE(dst, reading[checks.CLABE]{id, changes}, today), err
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
