package checks

import (
	"testing"

	"pgregory.net/rapid"
)

// unpack returns the RFC whose key is key.
func unpack(key uint64) string {
	const letters, alnum = "ABCDEFGHIJKLMNOPQRSTUVWXYZ&", "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	key--
	take := func(base uint64) uint64 { v := key % base; key /= base; return v }
	letter := func(v uint64) string {
		if v == letterEnye {
			return "Ñ"
		}
		return letters[v : v+1]
	}
	two := func(v uint64) string { return string([]byte{byte('0' + v/10), byte('0' + v%10)}) }

	check := alnum[take(11)]
	second, first := alnum[take(36)], alnum[take(36)]
	day, month, year := take(31)+1, take(12)+1, take(100)
	var s string
	for range 3 {
		s = letter(take(28)) + s
	}
	if v := take(29); v > 0 {
		s = letter(v-1) + s
	}
	if key != 0 {
		return "not a key"
	}
	return s + two(year) + two(month) + two(day) + string([]byte{first, second, check})
}

func TestPackRFCIsInjective(t *testing.T) {
	inPattern := rapid.StringMatching(`[A-Z&Ñ]{3,4}[0-9]{2}(0[1-9]|1[012])(0[1-9]|[12][0-9]|3[01])[A-Z0-9]{2}[0-9A]`)
	rapid.Check(t, func(t *rapid.T) {
		s := inPattern.Draw(t, "rfc")
		key, ok := PackRFC(s)
		if !ok || key == 0 || key >= 1<<49 {
			t.Fatalf("PackRFC(%q) = %d, %v", s, key, ok)
		}
		if got := unpack(key); got != s {
			t.Fatalf("PackRFC(%q) is the key of %q", s, got)
		}
		if fromBytes, ok := PackRFC([]byte(s)); !ok || fromBytes != key {
			t.Fatalf("PackRFC of bytes %q = %d, %v; of string %d", s, fromBytes, ok, key)
		}
	})
}

func TestPackRFCBounds(t *testing.T) {
	f := func(rfc string, want uint64) {
		t.Helper()
		key, ok := PackRFC(rfc)
		if ok != (want != 0) || key != want {
			t.Errorf("PackRFC(%q) = %d, %v; want %d", rfc, key, ok, want)
		}
	}
	f("AAA000101000", 1)
	f("ÑÑÑ991231ZZA", keysMoral)
	f("AAAA000101000", keysMoral+1)
	f("ÑÑÑÑ991231ZZA", 29*keysMoral)
	f("AAA000231000", 1+(31+30)*36*36*11) // the pattern admits 31 February
	f("", 0)
	f("aaa000101000", 0)
	f("AA000101000", 0)
	f("ÑA000101000", 0)
	f("AAAAA000101000", 0)
	f("ÑAAAA000101000", 0)
	f("ÑÑÑÑÑ000101000", 0)
	f("AA\xc3000101000", 0)
	f("AAA\xc3000101000", 0)
	f("AAA0:0101000", 0)
	f("AAA000100000", 0)
	f("AAA001301000", 0)
	f("AAA000132000", 0)
	f("AAA00010100B", 0)
	f("AAA0001010&0", 0)
	f("AAA000101 00", 0)
}

func BenchmarkPackRFC(b *testing.B) {
	rfcs := [4]string{"EFO010101AA1", "XAXX010101000", "SAT970701NN3", "MHTR93041179A"}
	var sum uint64
	for i := 0; b.Loop(); i++ {
		key, _ := PackRFC(rfcs[i&3])
		sum += key
	}
	if sum == 0 {
		b.Fatal("no key")
	}
	b.ReportAllocs()
}

func BenchmarkPackRFCBytes(b *testing.B) {
	rfcs := [4][]byte{[]byte("EFO010101AA1"), []byte("XAXX010101000"), []byte("MUÑ110218LJ6"), []byte("MHTR93041179A")}
	var sum uint64
	for i := 0; b.Loop(); i++ {
		key, _ := PackRFC(rfcs[i&3])
		sum += key
	}
	if sum == 0 {
		b.Fatal("no key")
	}
	b.ReportAllocs()
}

func BenchmarkParseRFC(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		sink, _ = ParseRFC("EFO010101AA1")
	}
}

func BenchmarkParseRFCNormalised(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		sink, _ = ParseRFC(" efo-010101-aa1")
	}
}

// TestUnpackRFC: what was packed comes back, and no number gives an RFC of another key.
func TestUnpackRFC(t *testing.T) {
	inPattern := rapid.StringMatching(`[A-Z&Ñ]{3,4}[0-9]{2}(0[1-9]|1[012])(0[1-9]|1[0-9]|2[0-8])[A-Z0-9]{2}[0-9A]`)
	rapid.Check(t, func(t *rapid.T) {
		want, err := ParseRFC(inPattern.Draw(t, "rfc"))
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := UnpackRFC(want.Key()); !ok || got != want {
			t.Fatalf("%q comes back as %q, %v", want, got, ok)
		}
		key := rapid.Uint64().Draw(t, "key")
		if rfc, ok := UnpackRFC(key); ok && rfc.Key() != key {
			t.Fatalf("%d is %v, whose key is %d", key, rfc, rfc.Key())
		}
		if rfc, ok := UnpackRFC(key % (29*keysMoral + 1)); ok {
			if again, err := ParseRFC(rfc.String()); err != nil || again != rfc {
				t.Fatalf("%v: %v, %v", rfc, again, err)
			}
		}
	})
	for _, key := range []uint64{0, 29*keysMoral + 1, 1<<64 - 1} {
		if rfc, ok := UnpackRFC(key); ok {
			t.Errorf("%d is %v", key, rfc)
		}
	}
}
