package tabular

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// records reads everything, as strings.
func records(src io.Reader) (all [][]string, err error) {
	r := NewReader(src)
	for {
		cells, err := r.Next()
		if err == io.EOF {
			return all, nil
		}
		if err != nil {
			return all, err
		}
		var record []string
		for _, c := range cells {
			record = append(record, string(c))
		}
		all = append(all, record)
	}
}

func equal(a, b [][]string) bool { return slices.EqualFunc(a, b, slices.Equal[[]string]) }

func TestReader(t *testing.T) {
	f := func(text string, want ...[]string) {
		t.Helper()
		for _, src := range []io.Reader{strings.NewReader(text), iotest.OneByteReader(strings.NewReader(text))} {
			got, err := records(src)
			if err != nil || !equal(got, want) {
				t.Errorf("%q (%T): got %q, %v; want %q", text, src, got, err, want)
			}
		}
	}
	r := func(cells ...string) []string { return cells }
	f("")
	f("a", r("a"))
	f("a,b\r\nc,d\r\n", r("a", "b"), r("c", "d"))
	f("a,b\nc,d", r("a", "b"), r("c", "d"))
	f(",\n", r("", ""))
	f("a,", r("a", ""))
	f(`"","a"`, r("", "a"))
	f(`"a,b","c ""d"" e"`, r("a,b", `c "d" e`))
	// Line ends inside quotes are the publisher's, whatever they are.
	f("\"a\nb\r\nc\rd\"\r\ne", r("a\nb\r\nc\rd"), r("e"))
	// Empty lines are not records; a quoted nothing is.
	f("\n\r\na\n\n", r("a"))
	f("\"\"\n", r(""))
	f("a\r", r("a"))
	f("\r")
	f("\"a\"\r", r("a"))
	// A carriage return alone ends nothing.
	f("a\rb,c\r\n", r("a\rb", "c"))
	// A quote inside an unquoted cell is a character.
	f("HOSPITAL \"DR. LICEAGA\",b\n", r(`HOSPITAL "DR. LICEAGA"`, "b"))
	f(strings.Repeat("x", 3*chunk)+",y", r(strings.Repeat("x", 3*chunk), "y"))
}

func TestReaderErrors(t *testing.T) {
	f := func(text string, want error, line int) {
		t.Helper()
		_, err := records(strings.NewReader(text))
		var at *RecordError
		if !errors.Is(err, want) || !errors.As(err, &at) || at.Line != line {
			t.Errorf("%.30q: got %v, want %v in line %d", text, err, want, line)
		}
	}
	f("a\n\"b\nc", ErrUnclosedQuote, 2)
	f("\"", ErrUnclosedQuote, 1)
	f("\"a\nb\"\n\"c\"d\n", ErrStrayQuote, 3)
	f("\"a\"\rb\n", ErrStrayQuote, 1)
	f("a\n\""+strings.Repeat("x\n", MaxRecord), ErrRecordTooLong, 2)
	f(strings.Repeat("x", MaxRecord+1), ErrRecordTooLong, 1)
	f(strings.Repeat(",", MaxCells)+"\n", ErrTooManyCells, 1)
}

func TestReaderLimitsAreReachable(t *testing.T) {
	got, err := records(strings.NewReader(strings.Repeat(",", MaxCells-1)))
	if err != nil || len(got[0]) != MaxCells {
		t.Errorf("%d cells: %v", MaxCells, err)
	}
	got, err = records(strings.NewReader(strings.Repeat("x", MaxRecord)))
	if err != nil || len(got[0][0]) != MaxRecord {
		t.Errorf("%d bytes: %v", MaxRecord, err)
	}
}

// TestReaderStopsEarly fails when an unclosed quote makes the reader take the
// whole file.
func TestReaderStopsEarly(t *testing.T) {
	src := &io.LimitedReader{R: repeating("x,"), N: 64 << 20}
	_, err := records(io.MultiReader(strings.NewReader(`"`), src))
	if read := 64<<20 - src.N; !errors.Is(err, ErrRecordTooLong) || read > 2*MaxRecord {
		t.Errorf("%v after %d bytes", err, read)
	}
}

func TestReaderPassesErrorsOn(t *testing.T) {
	broken := errors.New("broken")
	_, err := records(io.MultiReader(strings.NewReader("a,b\nc"), iotest.ErrReader(broken)))
	if err != broken {
		t.Errorf("got %v", err)
	}
}

func TestReaderDoesNotAllocate(t *testing.T) {
	r := NewReader(repeating("1,AAA010101AA1,\"NOMBRE, S.A.\",Definitivo,500-05-2018-16632 de fecha 01 de junio de 2018\r\n"))
	if n := testing.AllocsPerRun(10000, func() {
		if cells, err := r.Next(); err != nil || len(cells) != 5 {
			t.Fatal(len(cells), err)
		}
	}); n > 0 {
		t.Errorf("%v allocations per record", n)
	}
}

// FuzzReader compares with encoding/csv: what its strict mode reads this reader
// reads alike (line ends in quotes apart, which encoding/csv changes), and what
// this reader accepts beyond that is what its lazy mode makes of it.
func FuzzReader(f *testing.F) {
	for _, s := range []string{"", "a,b\r\nc", "\"a,\"\"b\"\"\n\",c\r\n", "a\"b,c", "\"a\"b", "\"", "\r\r\n", "\n\n,\n", "\"\"\r", "a\rb"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := records(strings.NewReader(text))
		if errors.Is(err, ErrTooManyCells) || errors.Is(err, ErrRecordTooLong) {
			return
		}
		pieces, pieceErr := records(iotest.OneByteReader(strings.NewReader(text)))
		if !equal(got, pieces) || (err == nil) != (pieceErr == nil) {
			t.Fatalf("%q byte by byte: %q (%v), whole: %q (%v)", text, pieces, pieceErr, got, err)
		}
		for _, record := range got {
			for i, c := range record {
				record[i] = strings.ReplaceAll(c, "\r\n", "\n")
			}
		}
		reference := func(lazy bool) ([][]string, error) {
			r := csv.NewReader(strings.NewReader(text))
			r.FieldsPerRecord = -1
			r.LazyQuotes = lazy
			return r.ReadAll()
		}
		if want, strictErr := reference(false); strictErr == nil {
			if err != nil || !equal(got, want) {
				t.Fatalf("%q: got %q (%v), encoding/csv %q", text, got, err, want)
			}
			return
		}
		if err != nil {
			return
		}
		if want, lazyErr := reference(true); lazyErr != nil || !equal(got, want) {
			t.Fatalf("%q: got %q, encoding/csv (lazy) %q (%v)", text, got, want, lazyErr)
		}
	})
}

func BenchmarkReader(b *testing.B) {
	text := bytes.Repeat([]byte("1,AAA010101AA1,\"NOMBRE, S.A.\",Definitivo,500-05-2018-16632 de fecha 01 de junio de 2018,01/06/2018,,,,\r\n"), 10000)
	b.Run("own", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		b.ReportAllocs()
		for b.Loop() {
			r := NewReader(bytes.NewReader(text))
			for {
				if _, err := r.Next(); err != nil {
					break
				}
			}
		}
	})
	b.Run("encoding-csv", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		b.ReportAllocs()
		for b.Loop() {
			r := csv.NewReader(bytes.NewReader(text))
			r.ReuseRecord = true
			for {
				if _, err := r.Read(); err != nil {
					break
				}
			}
		}
	})
}

func TestLooseReader(t *testing.T) {
	f := func(text string, guessed int, want ...[]string) {
		t.Helper()
		for _, src := range []io.Reader{strings.NewReader(text), iotest.OneByteReader(strings.NewReader(text))} {
			r := NewReader(src)
			r.Loose = true
			var got [][]string
			for {
				cells, err := r.Next()
				if err == io.EOF {
					break
				}
				if err != nil {
					t.Fatalf("%q: %v", text, err)
				}
				var record []string
				for _, c := range cells {
					record = append(record, string(c))
				}
				got = append(got, record)
			}
			if !equal(got, want) || r.LooseQuotes() != guessed {
				t.Errorf("%q (%T): got %q, %d guessed; want %q, %d", text, src, got, r.LooseQuotes(), want, guessed)
			}
		}
	}
	r := func(cells ...string) []string { return cells }
	// What is well quoted is read as ever.
	f("\"a,b\",\"c \"\"d\"\" e\",\"f\ng\"\r\nh,i \"j\",k\n", 0, r("a,b", `c "d" e`, "f\ng"), r("h", `i "j"`, "k"))
	// A cell that never needed its quotes.
	f("a,\"B\" C,d\n\"E\" F\ng\n", 2, r("a", `"B" C`, "d"), r(`"E" F`), r("g"))
	// A quoted cell whose own quotes nobody doubled.
	f("a,\"b, \"C\" d\",e\n", 2, r("a", `b, "C" d`, "e"))
	f("\"b\n\"C\" d\"\ne", 2, r("b\n\"C\" d"), r("e"))

	strict := NewReader(strings.NewReader("\"B\" C\n"))
	if _, err := strict.Next(); !errors.Is(err, ErrStrayQuote) {
		t.Errorf("a strict reader: %v", err)
	}
	for text, want := range map[string]error{"\"a, \"b\" c\n": ErrUnclosedQuote, "\"a,\"b" + strings.Repeat("x", MaxRecord): ErrRecordTooLong} {
		loose := NewReader(strings.NewReader(text))
		loose.Loose = true
		if _, err := loose.Next(); !errors.Is(err, want) {
			t.Errorf("%.20q: %v, want %v", text, err, want)
		}
	}
}

// TestUnquoted: where no cell is quoted, a quote is a character wherever it stands.
func TestUnquoted(t *testing.T) {
	f := func(text string, want ...[]string) {
		t.Helper()
		r := NewReader(strings.NewReader(text))
		r.Unquoted = true
		var got [][]string
		for {
			cells, err := r.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%q: %v", text, err)
			}
			var record []string
			for _, c := range cells {
				record = append(record, string(c))
			}
			got = append(got, record)
		}
		if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	f("\"A\" S.A.,b\"\n\"c,\"\"\r\n", []string{`"A" S.A.`, `b"`}, []string{`"c`, `""`})
	f(",", []string{"", ""})
	f(",\r", []string{"", ""})
	f("\n,\n\r\n", []string{"", ""})
	f("\"", []string{`"`})
	f("")
}
