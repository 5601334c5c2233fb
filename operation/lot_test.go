package operation

import (
	"encoding/csv"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"cotejo/checks"
	"cotejo/operation/entries"
)

// letters is a lot whose items are lower-case words of at most eight letters.
var letters = &Lot{
	Entry: entries.Spec{Name: "palabra", List: "palabras", Max: 1000}, MaxBytes: 1 << 20,
	Tiers: []Tier{{1, 2, 10}, {3, 5, 7}, {6, 0, 1}},
	Read: func(text string) (key uint64, err error) {
		for _, c := range []byte(text) {
			key = key<<8 | uint64(c)
		}
		if text == "" || len(text) > 8 || strings.Trim(text, "abcdefghijklmnopqrstuvwxyz") != "" {
			return 0, &checks.Problem{Type: "value_error", Rule: "no es una palabra: " + text}
		}
		return key, nil
	},
}

// TestListIsKept: a list comes back from its pieces as it was read: each entry in its
// order, the first of equal ones as the item, and refused ones with the same reason.
func TestListIsKept(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(rapid.OneOf(rapid.StringMatching(`[a-c]{1,2}`), rapid.String()), 1, 300).Draw(t, "lista")
		body, err := marshalPlain(words)
		if err != nil {
			t.Fatal(err)
		}
		list, c, err := letters.readList(&Request{ContentType: []byte("application/json"), Body: body})
		if err != nil {
			t.Fatal(err)
		}
		r := listReader{pieces: list.pieces}
		first, counts := map[string]int{}, [listedKinds]int{}
		for i, word := range words {
			e, ok, err := r.next()
			if err != nil || !ok || e.line != i+1 {
				t.Fatalf("%d: %+v, %v, %v", i+1, e, ok, err)
			}
			counts[e.kind]++
			key, problem := letters.readEntry([]byte(word))
			before, again := first[strings.TrimSpace(word)]
			switch {
			case problem != nil:
				if e.kind != listedRefused || letters.refusal(e.text).Error() != problem.Error() {
					t.Fatalf("%q: %+v is refused as %v, was %v", word, e, letters.refusal(e.text), problem)
				}
			case again:
				if e.kind != listedRepeated || e.first != before || e.key != key {
					t.Fatalf("%q: %+v, first on %d", word, e, before)
				}
			default:
				first[strings.TrimSpace(word)] = i + 1
				if e.kind != listedItem || e.key != key {
					t.Fatalf("%q: %+v", word, e)
				}
			}
		}
		if _, ok, err := r.next(); ok || err != nil || counts != list.counts || (list.units() == 0) != (len(c.items) > 0) {
			t.Fatalf("more, %v; counted %v, kept %v; %v", err, counts, list.counts, c.items)
		}
	})
}

// FuzzListReader: whatever is stored, reading it ends.
func FuzzListReader(f *testing.F) {
	list, _, _ := letters.readList(&Request{ContentType: []byte("application/json"), Body: []byte(`["a","b","a","?"]`)})
	f.Add(list.pieces[0])
	f.Fuzz(func(t *testing.T, piece []byte) {
		r := listReader{pieces: [][]byte{piece}}
		for n := 0; ; n++ {
			_, ok, err := r.next()
			if err != nil && !errors.Is(err, errList) || n > len(piece) {
				t.Fatalf("%v after %d", err, n)
			}
			if !ok {
				return
			}
		}
	})
}

// TestLotTiers: what positions cost, and how many a balance pays, by counting one by one.
func TestLotTiers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		from, to := rapid.IntRange(1, 12).Draw(t, "desde"), rapid.IntRange(0, 12).Draw(t, "hasta")
		balance := rapid.Int64Range(0, 60).Draw(t, "saldo")
		price := func(position int) int64 { return []int64{10, 10, 7, 7, 7, 1}[min(position, 6)-1] }
		want, left, pays := int64(0), balance, 0
		for position := from; position <= to; position++ {
			want += price(position)
			if left >= price(position) && pays == position-from {
				left -= price(position)
				pays++
			}
		}
		sum, next := int64(0), from
		for _, part := range letters.tiers(from, to) {
			if part.from != next {
				t.Fatalf("%+v begins not at %d", part, next)
			}
			sum, next = sum+part.cost(), part.to+1
		}
		if got := letters.affordable(from, to, balance); sum != want || got != pays || from <= to && next != to+1 {
			t.Fatalf("cost %d, want %d; %d are paid, want %d", sum, want, got, pays)
		}
	})
}

func TestNegotiate(t *testing.T) {
	f := func(accept, want string) {
		t.Helper()
		got, ok := negotiate([]byte(accept), mediaJSON, mediaNDJSON, mediaCSV)
		if got != want || ok != (want != "") {
			t.Errorf("%q: %q, %v; want %q", accept, got, ok, want)
		}
	}
	f("", mediaJSON)
	f(" ", mediaJSON)
	f("*/*", mediaJSON)
	f("text/*", mediaCSV)
	f("application/*", mediaJSON)
	f("text/csv", mediaCSV)
	f("Text/CSV; charset=utf-8", mediaCSV)
	f("text/html, application/x-ndjson;q=0.5, text/csv;q=0.9", mediaCSV)
	f("application/json;q=0, */*", mediaNDJSON)
	f("application/json;q=0.1, application/x-ndjson", mediaNDJSON)
	f("text/html, */*;q=0.1", mediaJSON)
	f("text/html", "")
	f("*/*;q=0", "")
	f("application/json;q=2", mediaJSON) // unreadable weights are not held against anyone
	f(strings.Repeat("a/b,", 10_000), "")
}

func TestPrefersAsync(t *testing.T) {
	f := func(prefer string, want bool) {
		t.Helper()
		if got := prefersAsync([]byte(prefer)); got != want {
			t.Errorf("%q: %v", prefer, got)
		}
	}
	f("", false)
	f("respond-async", true)
	f("wait=5, Respond-Async;x=1", true)
	f("respond-asynchronously", false)
}

// TestCells: any text comes back from its cell, with an apostrophe before what a
// spreadsheet would run.
func TestCells(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.StringMatching(`[=+\-@＝＋－＠\t\r\n]?[",a\n]{0,5}`)).Draw(t, "texto")
		if strings.Contains(text, "\r") {
			text = strings.ReplaceAll(text, "\r", " ") // the reader below makes \r\n a \n
		}
		var c lotCSV
		c.cell(text)
		rows, err := csv.NewReader(strings.NewReader("x" + string(c.b) + ",y\n")).ReadAll()
		want := text
		if formula(text) {
			want = "'" + text
		}
		if err != nil || len(rows) != 1 || !slices.Equal(rows[0], []string{"x", want, "y"}) {
			t.Fatalf("%q: %q, %v", text, rows, err)
		}
	})
}

// TestPlacesAreShared: two of one organization work at once, and those of others before
// its third.
func TestPlacesAreShared(t *testing.T) {
	var l lots
	add := func(org int, id uint32) *openLot {
		of := lotOf{account: 1}
		of.Org, of.ID.Counter = 7, id
		if org != 7 {
			of.Org = 8
		}
		o := &openLot{lotOf: of, changed: make(chan struct{})}
		if l.open == nil {
			l.open = map[lotOf]*openLot{}
		}
		l.open[of] = o
		l.queue = append(l.queue, o)
		return o
	}
	var order []string
	note := func(o *openLot) string { return fmt.Sprintf("%d/%d", o.Org, o.ID.Counter) }
	for id := range uint32(4) {
		add(7, id)
	}
	add(8, 10)
	var first *openLot
	for o := l.next(); o != nil; o = l.next() {
		if first == nil {
			first = o
		}
		order = append(order, note(o))
	}
	l.leave(first)
	order = append(order, note(l.next()))
	if want := []string{"7/0", "7/1", "8/10", "7/2"}; !slices.Equal(order, want) {
		t.Errorf("%v, want %v", order, want)
	}
	if l.next() != nil {
		t.Error("a third of one organization")
	}
}
