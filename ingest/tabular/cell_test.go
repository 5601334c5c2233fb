package tabular

import (
	"bufio"
	"bytes"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestAppendText(t *testing.T) {
	f := func(cell, want string) {
		t.Helper()
		if got := string(AppendText([]byte("x"), []byte(cell))); got != "x"+want {
			t.Errorf("%q: got %q, want %q", cell, got[1:], want)
		}
	}
	f("", "")
	f("  ", "")
	f(" A  B ", "A B")
	f("CARYRA\r\n\n\tS.A.\u00a0DE\u00a0\u00a0C.V.\u00a0", "CARYRA S.A. DE C.V.")
	f("A\x00B\x7fC\u0093D", "A B C D")
	f("AVALU\u0301OS", "AVALÚOS")
	f("“A&L” ñandú", "“A&L” ñandú")
}

func TestAppendKey(t *testing.T) {
	f := func(cell, want string) {
		t.Helper()
		if got := string(AppendKey(nil, []byte(cell))); got != want {
			t.Errorf("%q: got %q, want %q", cell, got, want)
		}
	}
	f("DIN010101AA1 ", "DIN010101AA1")
	f(" din 010101\u00a0aa1\r\n", "DIN010101AA1")
	f("ñ&b010101aa1", "Ñ&B010101AA1")
	f("N\u0303AA010101AA1", "ÑAA010101AA1")
}

func TestAppendFolded(t *testing.T) {
	f := func(cell, want string) {
		t.Helper()
		if got := string(AppendFolded([]byte("á"), []byte(cell))); got != "á"+want {
			t.Errorf("%q: got %q, want %q", cell, got, want)
		}
	}
	f("", "")
	f(" Núñez\r\n y  PEÑA ", "NUNEZ Y PENA")
	f("FRACCIÓN X", "FRACCION X")
	f("F¡sica", "F¡SICA")
	f("“A&L” 1°", "“A&L” 1°")
	f("ɐɐɐɐ", "ⱯⱯⱯⱯ") // longer in upper case
	f("\u0301", "")
}

func TestAppendAmount(t *testing.T) {
	f := func(text, want string, ok bool) {
		t.Helper()
		if got, read := AppendAmount([]byte("x"), []byte(text)); string(got) != "x"+want || read != ok {
			t.Errorf("%q: got %q, %v, want %q, %v", text, got[1:], read, want, ok)
		}
	}
	f("", "", true)
	f("1,390,273", "1390273", true)
	f("1390273", "1390273", true)
	f("1,390,273.00", "1390273", true)
	f("$ 1,390.50", "1390.5", true)
	f("-$1,390.05", "-1390.05", true)
	f("$-0.50", "-0.5", true)
	f("-0.00", "0", true)
	f("000,012", "12", true)
	f("0", "0", true)
	f("5.", "5", true)
	for _, text := range []string{"-", ".5", "1,39", "1,39,000", "1390,273", "1,390,2730", "1.390.273", "(1,000)", "12 pesos", "$", "1e6", "9999999999999999999"} {
		f(text, text, false)
	}
}

func TestBlank(t *testing.T) {
	f := func(cell string, want bool) {
		t.Helper()
		if got := Blank([]byte(cell)); got != want || got != (len(AppendText(nil, []byte(cell))) == 0) {
			t.Errorf("%q: %v", cell, got)
		}
	}
	f("", true)
	f(" \t\r\n\u00a0\u0085\x00", true)
	f(" \u00a0.", false)
	f("\ufffd", false)
}

func TestFold(t *testing.T) {
	f := func(title, want string) {
		t.Helper()
		if got := Fold([]byte(title)); got != want {
			t.Errorf("%q: got %q, want %q", title, got, want)
		}
	}
	f("No.", "no")
	f(" RAZÓN  SOCIAL ", "razon social")
	f("Número y fecha\r\nde oficio", "numero y fecha de oficio")
	f("AÑO", "ano")
}

func TestAppendDates(t *testing.T) {
	f := func(cell, want string, seen Dates) {
		t.Helper()
		got, s, ok := AppendDates([]byte("x"), AppendText(nil, []byte(cell)))
		if string(got) != "x"+want || s != seen || !ok {
			t.Errorf("%q: got %q, %+v, %v; want %q, %+v", cell, got[1:], s, ok, want, seen)
		}
	}
	plain := func(n int) Dates { return Dates{Read: n} }
	f("", "", Dates{})
	f("01/06/2018", "2018-06-01", plain(1))
	f("1/6/2018", "2018-06-01", plain(1))
	f(" 05.03.2019 ", "2019-03-05", plain(1))
	f("2018-06-01", "2018-06-01", plain(1))
	f("25/05/2022 - 26/04/2021", "2022-05-25 2021-04-26", plain(2))
	f("29/08/2022  - 27/08/2018", "2022-08-29 2018-08-27", plain(2))
	f("24/04/2023 -15/10/2020", "2023-04-24 2020-10-15", plain(2))
	f("01/12/2023- 24/02/2021", "2023-12-01 2021-02-24", plain(2))
	f("17/10/2019    27/08/2018", "2019-10-17 2018-08-27", plain(2))
	f("22/06/2018 // 10/10/2018", "2018-06-22 2018-10-10", plain(2))
	f("22/06/2018//10/10/2018", "2018-06-22 2018-10-10", plain(2))
	f("26/10/2023 – 26/04/2022-14/12/2020", "2023-10-26 2022-04-26 2020-12-14", plain(3))
	f("25-03-2024 - 25/06/2019", "2024-03-25 2019-06-25", plain(2))
	f("19/07/2018 - 30/10/18", "2018-07-19 2018-10-30", Dates{Read: 2, ShortYear: 1})
	f("14-08-19 // 20/09/2018", "2019-08-14 2018-09-20", Dates{Read: 2, ShortYear: 1})
	f("14-08-19-20-09-18", "2019-08-14 2018-09-20", Dates{Read: 2, ShortYear: 2})
	// AEHE660309SE6 and CAS101105KB6 of the real lists: days since 1899-12-30.
	f("44014", "2020-07-02", Dates{Read: 1, Serial: 1})
	f("44029 - 44014", "2020-07-17 2020-07-02", Dates{Read: 2, Serial: 2})
	f("36526", "2000-01-01", Dates{Read: 1, Serial: 1})
	f("73050", "2099-12-31", Dates{Read: 1, Serial: 1})
	f("29/02/2020", "2020-02-29", plain(1))

	kept := func(cell string) {
		t.Helper()
		got, s, ok := AppendDates([]byte("x"), []byte(cell))
		if string(got) != "x"+cell || s != (Dates{}) || ok {
			t.Errorf("%q: got %q, %+v, %v; want it kept", cell, got[1:], s, ok)
		}
	}
	kept("29/02/2019")
	kept("31/04/2018 - 01/06/2018")
	kept("01/06/2018 - 31/04/2018")
	kept("01/13/2018")
	kept("00/01/2018")
	kept("01/06/218")
	kept("01/06")
	kept("01/06/2018x")
	kept("01/06/2018 por confirmar")
	kept("36525")
	kept("73051")
	kept("440145")
	kept("44014.5")
	kept("pendiente")
	kept("-")
}

func TestAppendOficios(t *testing.T) {
	f := func(cell, want, number string) {
		t.Helper()
		text := AppendText(nil, []byte(cell))
		got, ok := AppendOficios([]byte("x"), text)
		if string(got) != "x"+want || !ok {
			t.Errorf("%q: got %q, %v; want %q", cell, got[1:], ok, want)
		}
		if n := string(AppendOficioNumber([]byte("x"), text)); n != "x"+number {
			t.Errorf("%q: got the number %q, want %q", cell, n[1:], number)
		}
	}
	const one, first = "500-05-2018-16632 de 2018-06-01", "500-05-2018-16632"
	f("", "", "")
	f("500-05-2018-16632 de fecha 01 de junio de 2018", one, first)
	f("500-05-2018-16632  de  fecha 1 de  junio de  2018 ", one, first)
	f("500-05-2018-16632 de 1 de junio de 2018", one, first)
	f("500-05-2018-16632 de fecha 1 de junio del 2018", one, first)
	f("500-05-2018-16632 de fecha 1 junio 2018", one, first)
	f("500-05-2018-16632 de fecha 1 junio de 2018", one, first)
	f("500-05-2018-16632 DE FECHA 01 DE JUNIO DE 2018", one, first)
	f("500-05-2018-16632 de fecha 01 de junio de 2018?", one, first)
	f("500-05-2018-16632 de fecha 01 de junio de 2018.", one, first)
	f("500 – 05 – 2018 – 16632 de fecha 01 de junio de 2018", one, first)
	f("500-02-00-2014-1360 de fecha 30 de enero de 2014", "500-02-00-2014-1360 de 2014-01-30", "500-02-00-2014-1360")
	// The day is no group of the number when a month follows it.
	f("500-05-2018-16632 01 de junio de 2018", one, first)
	f("500-05-2018-16632 1 junio 2018", one, first)
	f("500 05 2026 11484 08 de abril de 2026", "500-05-2026-11484 de 2026-04-08", "500-05-2026-11484")
	f("500-05-00-00-00-2026-16026 08 de mayo de 2026", "500-05-00-00-00-2026-16026 de 2026-05-08", "500-05-00-00-00-2026-16026")
	f("1-2-3-4-5-6-7-8-9-10 08 de mayo de 2026", "1-2-3-4-5-6-7-8-9-10 de 2026-05-08", "1-2-3-4-5-6-7-8-9-10")
	f("500 05 2022 6121 25 de mayo de 2022 500 05 2021 6937 26 de abril de 2021",
		"500-05-2022-6121 de 2022-05-25 // 500-05-2021-6937 de 2021-04-26", "500-05-2021-6937")
	f("500 05 2026 11484 de fecha 08 de abril de 2026", "500-05-2026-11484 de 2026-04-08", "500-05-2026-11484")
	f("500-05-00-00-00-2026-16026 de fecha 08 de mayo de 2026", "500-05-00-00-00-2026-16026 de 2026-05-08", "500-05-00-00-00-2026-16026")
	f("900-04-00-00-00-2024-80 de 25 de enero de 2024", "900-04-00-00-00-2024-80 de 2024-01-25", "900-04-00-00-00-2024-80")
	f("500-05-2018-1 de fecha 3 de setiembre de 2018", "500-05-2018-1 de 2018-09-03", "500-05-2018-1")
	// The newest stands first, so the last one is the oldest.
	const two = "500-05-2022-6121 de 2022-05-25 // 500-05-2021-6937 de 2021-04-26"
	for _, separator := range []string{" // ", "//", "  //", " //", " - ", "-", " ", " – "} {
		f("500-05-2022-6121 de fecha 25 de mayo de 2022"+separator+"500-05-2021-6937 de fecha 26 de abril de 2021", two, "500-05-2021-6937")
	}
	f("500-05-2023-21570 de fecha 26 de octubre 2023 // 500-05-2022-6056 de fecha 25 de abril de 2022 // 500-05-2020-28859 de fecha 14 de diciembre de 2020",
		"500-05-2023-21570 de 2023-10-26 // 500-05-2022-6056 de 2022-04-25 // 500-05-2020-28859 de 2020-12-14", "500-05-2020-28859")

	kept := func(cell, number string) {
		t.Helper()
		if got, ok := AppendOficios([]byte("x"), []byte(cell)); string(got) != "x"+cell || ok {
			t.Errorf("%q: got %q, %v; want it kept", cell, got[1:], ok)
		}
		if n := string(AppendOficioNumber([]byte("x"), []byte(cell))); n != "x"+number {
			t.Errorf("%q: got the number %q, want %q", cell, n[1:], number)
		}
	}
	// A note has a meaning; the number under it is still the number.
	kept("500-05-2018-5922 de fecha 15 de febrero de 2018 (únicamente en el DOF)", "500-05-2018-5922")
	kept("500-05-2018-16632", "500-05-2018-16632")
	kept("oficio 12 500-05-2018-16632 de fecha 31 de febrero de 2018", "500-05-2018-16632")
	kept("500 05 2026 11484 (sin fecha)", "500-05-2026-11484")
	kept("500 05 2026 11484 08 de abril de 2026 (solo DOF)", "500-05-2026-11484")
	kept("500-05-2018-16632-01 de junio de 2018", "500-05-2018-16632-01")
	kept("500 05 2026 8 de abril de 2026", "500-05-2026-8")
	kept("1-2-3-4-5-6-7-8-9-10-11 de fecha 08 de mayo de 2026", "1-2-3-4-5-6-7-8-9-10-11")
	kept("500-05-2018-16632 de fecha 01-06-2018", "500-05-2018-16632")
	kept("05-2018-16632 de fecha 1 de junio de 2018", "05-2018-16632 de fecha 1 de junio de 2018")
	kept("sin número", "sin número")
}

func TestSniff(t *testing.T) {
	f := func(text, code string) {
		t.Helper()
		r := bufio.NewReader(strings.NewReader(text))
		err := Sniff(r)
		var refusal *Refusal
		if code == "" {
			if err != nil || r.Buffered() != len(text) {
				t.Errorf("%q: %v, %d bytes left", text, err, r.Buffered())
			}
			return
		}
		if !errors.As(err, &refusal) || refusal.Fault.Code != code {
			t.Errorf("%q: got %v, want %s", text, err, code)
		}
	}
	f("No,RFC\r\n", "")
	f("\r\n a", "")
	f("<!DOCTYPE html>", HTML)
	f(" \r\n\t<html>", HTML)
	f("", NoRows)
	f(" \r\n", NoRows)
	f(strings.Repeat(" ", 1<<17), NoRows)
}

// FuzzCell holds for any text what normalised values are relied on for: they are
// valid UTF-8 without control characters or surplus blanks, and normalising one
// again changes nothing.
func FuzzCell(f *testing.F) {
	for _, s := range []string{
		"", "25/05/2022 - 26/04/2021", "14-08-19 // 20/09/2018", "44014", "500 05 2026 11484 de fecha 08 de abril de 2026",
		"500-05-2022-6121 de fecha 25 de mayo de 2022 // 500-05-2021-6937 de fecha 26 de abril de 2021", " N\u0303\u00a0\r\n", "\u0301 \u0301", "１２/０１/2018", "1,390,273.50", "ɐ ñ",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, cell string) {
		if !utf8.ValidString(cell) {
			return
		}
		text := AppendText(nil, []byte(cell))
		if again := AppendText(nil, text); !bytes.Equal(text, again) {
			t.Fatalf("text %q: %q, then %q", cell, text, again)
		}
		if bytes.Contains(text, []byte("  ")) || bytes.ContainsAny(text, "\r\n\x1f") || !bytes.Equal(text, bytes.TrimSpace(text)) {
			t.Fatalf("text %q: %q", cell, text)
		}
		key := AppendKey(nil, []byte(cell))
		if bytes.ContainsAny(key, " \r\n") || !utf8.Valid(key) {
			t.Fatalf("key %q: %q", cell, key)
		}
		folded := AppendFolded(nil, []byte(cell))
		if again := AppendFolded(nil, folded); !bytes.Equal(folded, again) || !utf8.Valid(folded) {
			t.Fatalf("folded %q: %q, then %q", cell, folded, again)
		}
		amount, ok := AppendAmount(nil, text)
		if again, okAgain := AppendAmount(nil, amount); ok != okAgain || !bytes.Equal(amount, again) {
			t.Fatalf("amount %q: %q, then %q", cell, amount, again)
		}
		dates, _, ok := AppendDates(nil, text)
		if again, _, okAgain := AppendDates(nil, dates); ok && (!okAgain || !bytes.Equal(dates, again)) {
			t.Fatalf("dates %q: %q, then %q", cell, dates, again)
		}
		oficios, ok := AppendOficios(nil, text)
		if !ok && !bytes.Equal(oficios, text) {
			t.Fatalf("oficios %q: %q", cell, oficios)
		}
		if number := AppendOficioNumber(nil, text); ok && len(text) > 0 && !bytes.Contains(oficios, append(bytes.Clone(number), " de "...)) {
			t.Fatalf("oficios %q: the number %q is not in %q", cell, number, oficios)
		}
	})
}
