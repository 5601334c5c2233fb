package canon

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestTransform(t *testing.T) {
	f := func(in, want string) {
		t.Helper()
		got, err := Transform([]byte(in))
		if err != nil || string(got) != want {
			t.Errorf("Transform(%s):\n got %s, %v\nwant %s", in, got, err, want)
		}
	}
	// RFC 8785, 3.2.2 and 3.2.3.
	f(`{
  "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
  "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
  "literals": [null, true, false]
}`, `{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\u000f\nA'B\"\\\\\"/"}`)
	f(`{
  "\u20ac": "Euro Sign",
  "\r": "Carriage Return",
  "\ufb33": "Hebrew Letter Dalet With Dagesh",
  "1": "One",
  "\ud83d\ude00": "Emoji: Grinning Face",
  "\u0080": "Control",
  "\u00f6": "Latin Small Letter O With Diaeresis"
}`, `{"\r":"Carriage Return","1":"One","`+"\u0080"+`":"Control","ö":"Latin Small Letter O With Diaeresis",`+
		`"€":"Euro Sign","😀":"Emoji: Grinning Face","`+"\ufb33"+`":"Hebrew Letter Dalet With Dagesh"}`)

	f(" \t\r\n{ } ", `{}`)
	f(`[ ]`, `[]`)
	f(`[ { } , [ ] ]`, `[{},[]]`)
	f(`"a\u00f1\u000a"`, `"añ\n"`)
	f(`{"b":{"z":1,"y":[{"d":4,"c":3}]},"a":2}`, `{"a":2,"b":{"y":[{"c":3,"d":4}],"z":1}}`)
	f(`{"a":1,"A":2,"aa":3,"":4}`, `{"":4,"A":2,"a":1,"aa":3}`)
	f(`{"a":{"a":{"a":1}}}`, `{"a":{"a":{"a":1}}}`)
	f(`{"\u0062":1,"a":2}`, `{"a":2,"b":1}`)
	f(`"\uFFFF\uD7FF\uE000"`, "\"\uffff\ud7ff\ue000\"")
	f(strings.Repeat("[", 64)+strings.Repeat("]", 64), strings.Repeat("[", 64)+strings.Repeat("]", 64))

	f(`-0`, `0`)
	f(`-0.0e9`, `0`)
	f(`0e999`, `0`)
	f(`1e-400`, `0`)
	f(`999999999999999`, `999999999999999`)
	f(`-9007199254740993`, `-9007199254740992`)
	f(`100000000000000000000`, `100000000000000000000`)
	f(`1000000000000000000000`, `1e+21`)
	f(`1.0`, `1`)
	f(`10e1`, `100`)
	f(`1e-7`, `1e-7`)
	f(`1.5E-10`, `1.5e-10`)
	f(`12.50`, `12.5`)
}

func TestTransformRefuses(t *testing.T) {
	f := func(in string, want error, at int) {
		t.Helper()
		got, err := Transform([]byte(in))
		if !errors.Is(err, want) || got != nil {
			t.Errorf("Transform(%q) = %s, %v; want %v", in, got, err, want)
		} else if !strings.HasPrefix(err.Error(), fmt.Sprintf("JSON, byte %d: ", at)) {
			t.Errorf("Transform(%q): %v; want byte %d", in, err, at)
		}
	}
	syntax := func(in string, at int) { t.Helper(); f(in, ErrSyntax, at) }
	syntax("", 0)
	syntax("  ", 2)
	syntax("\ufeff1", 0)
	syntax("1 2", 2)
	syntax("{}x", 2)
	syntax("[1,]", 3)
	syntax("[1 2]", 3)
	syntax("[1", 2)
	syntax("[\x001]", 1)
	syntax(`{"a":1,}`, 7)
	syntax(`{a:1}`, 1)
	syntax(`{"a" 1}`, 5)
	syntax(`{"a":}`, 5)
	syntax(`{"a":1`, 6)
	syntax(`{"a"`, 4)
	syntax(`'a'`, 0)
	syntax(`"a`, 2)
	syntax("\"a\n\"", 2)
	syntax("\"\\n\n\"", 3)
	syntax(`"\x"`, 2)
	syntax(`"\`, 2)
	syntax(`"\u12"`, 1)
	syntax(`"\u12G4"`, 1)
	syntax(`"\ud83d\u12"`, 8)
	syntax("tru", 0)
	syntax("True", 0)
	syntax("nulls", 4)
	syntax("NaN", 0)
	syntax("Infinity", 0)
	syntax("01", 0)
	syntax("-01", 1)
	syntax("00", 0)
	syntax("+1", 0)
	syntax("-", 1)
	syntax(".5", 0)
	syntax("1.", 2)
	syntax("1.e3", 2)
	syntax("1e", 2)
	syntax("1e+", 3)
	syntax("0x10", 1)
	syntax("1_000", 1)
	syntax("٣", 0)

	f(`{"a":1,"a":1}`, ErrDuplicateName, 7)
	f(` {"a":1,"b":2,"a":3}`, ErrDuplicateName, 1)
	f(`[{"a":1,"\u0061":2}]`, ErrDuplicateName, 8)
	f(strings.Repeat("[", 65)+strings.Repeat("]", 65), ErrDepth, 64)
	f(strings.Repeat(`{"a":`, 65), ErrDepth, 64*5)
	f("[1,1e309]", ErrNumber, 3)
	f("-1"+strings.Repeat("0", 400), ErrNumber, 0)
	f("\"a\xff\"", ErrUnicode, 2)
	f("\"\xed\xa0\x80\"", ErrUnicode, 1)
	f(`"a\ud83d"`, ErrUnicode, 2)
	f(`"a\ud83dx\ude00"`, ErrUnicode, 2)
	f(`"\ude00\ud83d"`, ErrUnicode, 1)
	f(`"\ud83d\u0041"`, ErrUnicode, 1)
}

// The vectors of RFC 8785, appendix B.
func TestNumbers(t *testing.T) {
	f := func(binary uint64, want string) {
		t.Helper()
		number := math.Float64frombits(binary)
		if got := string(appendNumber(nil, number)); got != want {
			t.Errorf("%016x is %s; want %s", binary, got, want)
		}
		long := strconv.FormatFloat(number, 'e', 17, 64)
		got, err := Transform([]byte(long))
		if err != nil || string(got) != want {
			t.Errorf("Transform(%s) = %s, %v; want %s", long, got, err, want)
		}
	}
	f(0x0000000000000000, "0")
	f(0x8000000000000000, "0")
	f(0x0000000000000001, "5e-324")
	f(0x8000000000000001, "-5e-324")
	f(0x7fefffffffffffff, "1.7976931348623157e+308")
	f(0xffefffffffffffff, "-1.7976931348623157e+308")
	f(0x4340000000000000, "9007199254740992")
	f(0xc340000000000000, "-9007199254740992")
	f(0x4430000000000000, "295147905179352830000")
	f(0x44b52d02c7e14af5, "9.999999999999997e+22")
	f(0x44b52d02c7e14af6, "1e+23")
	f(0x44b52d02c7e14af7, "1.0000000000000001e+23")
	f(0x444b1ae4d6e2ef4e, "999999999999999700000")
	f(0x444b1ae4d6e2ef4f, "999999999999999900000")
	f(0x444b1ae4d6e2ef50, "1e+21")
	f(0x3eb0c6f7a0b5ed8c, "9.999999999999997e-7")
	f(0x3eb0c6f7a0b5ed8d, "0.000001")
	f(0x41b3de4355555553, "333333333.3333332")
	f(0x41b3de4355555554, "333333333.33333325")
	f(0x41b3de4355555555, "333333333.3333333")
	f(0x41b3de4355555556, "333333333.3333334")
	f(0x41b3de4355555557, "333333333.33333343")
	f(0xbecbf647612f3696, "-0.0000033333333333333333")
	f(0x43143ff3c1cb0959, "1424953923781206.2")
}

// anyValue draws what encoding/json reads from any JSON text.
func anyValue() *rapid.Generator[any] {
	text := rapid.OneOf(
		rapid.String(),
		rapid.StringOf(rapid.SampledFrom([]rune("abñ\"\\\n\u2028\ue000\uffff😀𝄞"))),
	)
	leaf := rapid.OneOf(
		rapid.Just[any](nil),
		rapid.Bool().AsAny(),
		rapid.Float64().AsAny(),
		rapid.Map(rapid.Int32(), func(n int32) any { return float64(n) }),
		text.AsAny(),
	)
	value := leaf
	for range 3 {
		inner := value
		value = rapid.OneOf(
			leaf,
			rapid.SliceOfN(inner, 0, 4).AsAny(),
			rapid.MapOfN(text, inner, 0, 6).AsAny(),
		)
	}
	return value
}

func TestTransformKeepsTheValue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := anyValue().Draw(t, "value")
		indented, err := json.MarshalIndent(v, "", "\t")
		if err != nil {
			t.Fatal(err)
		}
		got, err := Transform(indented)
		if err != nil {
			t.Fatalf("Transform(%s): %v", indented, err)
		}
		var want, back any
		if err := json.Unmarshal(indented, &want); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(got, &back); err != nil || !reflect.DeepEqual(back, want) {
			t.Fatalf("%s reads back as %#v, %v; want %#v", got, back, err, want)
		}
		if again, err := Transform(got); err != nil || !bytes.Equal(again, got) {
			t.Fatalf("not canonical: %s becomes %s, %v", got, again, err)
		}
		if marshalled, err := Marshal(v); err != nil || !bytes.Equal(marshalled, got) {
			t.Fatalf("Marshal gives %s, %v; Transform %s", marshalled, err, got)
		}
	})
}

func TestCompareUTF16(t *testing.T) {
	units := func(s string) []uint16 {
		var u []uint16
		for _, r := range s {
			if r >= 0x10000 {
				u = append(u, uint16(0xD800+(r-0x10000)>>10), uint16(0xDC00+(r-0x10000)&0x3FF))
			} else {
				u = append(u, uint16(r))
			}
		}
		return u
	}
	compare := func(a, b []uint16) int {
		for i := 0; i < len(a) && i < len(b); i++ {
			if a[i] != b[i] {
				return int(a[i]) - int(b[i])
			}
		}
		return len(a) - len(b)
	}
	sign := func(n int) int { return min(1, max(-1, n)) }
	text := rapid.StringOfN(rapid.OneOf(
		rapid.SampledFrom([]rune("aé€\ud7ff\ue000\ufb33\uffff𐀀😀\U0010ffff")),
		rapid.Rune(),
	), 0, 4, -1)
	rapid.Check(t, func(t *rapid.T) {
		a, b := text.Draw(t, "a"), text.Draw(t, "b")
		if got, want := sign(compareUTF16([]byte(a), []byte(b))), sign(compare(units(a), units(b))); got != want {
			t.Fatalf("%q against %q: %d; want %d", a, b, got, want)
		}
	})
}

func TestMarshal(t *testing.T) {
	got, err := Marshal(struct {
		Z string `json:"z"`
		A []int  `json:"a"`
	}{"<&>\u2028", []int{1, -2}})
	if want := "{\"a\":[1,-2],\"z\":\"<&>\u2028\"}"; err != nil || string(got) != want {
		t.Errorf("got %s, %v; want %s", got, err, want)
	}
	if _, err := Marshal(math.NaN()); err == nil {
		t.Error("NaN was accepted")
	}
}

func FuzzTransform(f *testing.F) {
	for _, s := range []string{
		`{"b":[1,2.50,-0,1e-7],"a":{"\u20ac":"\ud83d\ude00","":null}}`,
		`[true,false,"\b\f\n\r\t\/"]`, `{"a":1,"a":2}`, `[1e309]`, `"\ud800"`, "\"\xff\"", `[[[[`, `01`, ``,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		got, err := Transform(text)
		if valid := json.Valid(text); err != nil {
			if valid && errors.Is(err, ErrSyntax) {
				t.Fatalf("%q is valid JSON: %v", text, err)
			}
			return
		} else if !valid {
			t.Fatalf("%q is not JSON and was accepted as %s", text, got)
		}
		if len(got) > 6*len(text) {
			t.Fatalf("%d bytes became %d", len(text), len(got))
		}
		var want, back any
		if err := json.Unmarshal(text, &want); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(got, &back); err != nil || !reflect.DeepEqual(back, want) {
			t.Fatalf("%q became %s: %#v, %v", text, got, back, err)
		}
		if again, err := Transform(got); err != nil || !bytes.Equal(again, got) {
			t.Fatalf("not canonical: %s becomes %s, %v", got, again, err)
		}
	})
}

func BenchmarkTransform(b *testing.B) {
	text := []byte(`{"entrada":{"rfc":"EFO010101AA1"},"fecha":"2025-01-15","edicion_sha256":"` + strings.Repeat("ab", 32) +
		`","motor":"LISTAS/1","observado":null,"resultado":{"situacion":"Definitivo","nombre":"CONSTRUCCIÓN Y DISEÑO","filas":[1,2,3],"monto":1250.50}}`)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Transform(text); err != nil {
			b.Fatal(err)
		}
	}
}
