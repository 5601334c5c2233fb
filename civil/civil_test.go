package civil_test

import (
	"testing"
	"time"

	"cotejo/civil"
)

func TestParseAcceptsOnlyRealDays(t *testing.T) {
	f := func(in string, ok bool) {
		t.Helper()
		d, err := civil.Parse(in)
		if (err == nil) != ok {
			t.Fatalf("Parse(%q): %v, se esperaba válido=%v", in, err, ok)
		}
		if ok && d.String() != in {
			t.Fatalf("Parse(%q) = %s", in, d)
		}
	}
	f("2026-11-20", true)
	f("2024-02-29", true)
	f("0001-01-01", true)
	f("2026-02-30", false)
	f("2023-02-29", false)
	f("2026-13-01", false)
	f("2026-1-01", false)
	f("2026/11/20", false)
	f("20261120", false)
	f("٢٠٢٦-11-20", false)
	f("", false)
}

func TestDayChangesAtMexicoCityMidnight(t *testing.T) {
	f := func(utc, want string) {
		t.Helper()
		at, err := time.Parse(time.RFC3339, utc)
		if err != nil {
			t.Fatal(err)
		}
		if got := civil.Of(at).String(); got != want {
			t.Fatalf("Of(%s) = %s, se esperaba %s", utc, got, want)
		}
	}
	f("2026-11-20T05:59:59Z", "2026-11-19")
	f("2026-11-20T06:00:00Z", "2026-11-20")
}

func TestTimestampCarriesTheOffset(t *testing.T) {
	at := time.Date(2026, 11, 20, 16, 15, 42, 999, time.UTC)
	if got, want := civil.Timestamp(at), "2026-11-20T10:15:42-06:00"; got != want {
		t.Fatalf("Timestamp = %s, se esperaba %s", got, want)
	}
	if got := string(civil.AppendTimestamp([]byte("x"), at)); got != "x"+civil.Timestamp(at) {
		t.Fatalf("AppendTimestamp = %s", got)
	}
}

func TestDaysAndOrder(t *testing.T) {
	a, _ := civil.Parse("2024-02-28")
	b, _ := civil.Parse("2024-03-01")
	if got := a.Days(b); got != 2 {
		t.Fatalf("Days = %d, se esperaban 2", got)
	}
	if !a.Before(b) || b.Before(a) || a.Before(a) {
		t.Fatal("Before no ordena los días")
	}
}

func TestTextFormKeepsTheZeroDate(t *testing.T) {
	var d civil.Date
	if err := d.UnmarshalText(nil); err != nil || !d.IsZero() || d.String() != "" {
		t.Fatalf("fecha vacía: %v %v", d, err)
	}
	if err := d.UnmarshalText([]byte("2026-02-30")); err == nil {
		t.Fatal("se aceptó el 30 de febrero")
	}
}
