package evidence

import (
	"context"
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"

	"cotejo/civil"
	"cotejo/operation"
)

// asked is the period that a request would be about, as the operation decodes it.
func asked(t interface{ Fatal(...any) }, now time.Time, args ...operation.Arg) (span, error) {
	var p span
	op := operation.Operation{
		ID: "pedir", Method: "GET", Path: "/pedir", Tag: "t", Summary: "s", Description: "d", Auth: operation.Open,
		Params: periodParams(), Output: usageSchema(),
		Read: func(_ context.Context, c operation.Call) (r operation.Response, err error) {
			p, err = period(c.Input, now)
			return r, err
		},
	}
	table, err := operation.NewTable([]operation.Operation{op})
	if err != nil {
		t.Fatal(err)
	}
	_, err = new(operation.Pipeline).Do(context.Background(), &operation.Request{Operation: table[0], Args: args}, nil)
	return p, err
}

func arg(name, value string) operation.Arg {
	return operation.Arg{In: operation.InQuery, Name: name, Value: value}
}

func TestPeriod(t *testing.T) {
	now := time.Date(2028, 3, 1, 5, 59, 59, 0, time.UTC) // 29 February in Mexico City
	f := func(want string, args ...operation.Arg) {
		t.Helper()
		p, err := asked(t, now, args...)
		got := p.from.String() + " " + p.to.String()
		var invalid *operation.InvalidError
		if err != nil {
			if got = "no"; !errors.As(err, &invalid) {
				t.Errorf("%v: %v", args, err)
			}
		}
		if got != want {
			t.Errorf("%v: got %s, want %s", args, got, want)
		}
	}
	f("2028-02-01 2028-02-29")
	f("2028-02-01 2028-02-29", arg("mes", "2028-02"))
	f("2027-02-01 2027-02-28", arg("mes", "2027-02"))
	f("no", arg("mes", "2028-03"))
	f("no", arg("mes", "1999-12"))
	f("no", arg("mes", "2028-2"))
	f("no", arg("mes", "2028-02-01"))
	f("2028-02-29 2028-02-29", arg("desde", "2028-02-29"))
	f("no", arg("desde", "2028-03-01"))
	f("2028-02-29 2029-02-28", arg("desde", "2028-02-29"), arg("hasta", "2029-02-28"))
	f("no", arg("desde", "2028-02-29"), arg("hasta", "2029-03-01"))
	f("2027-03-01 2028-02-29", arg("desde", "2027-03-01"), arg("hasta", "2028-02-29"))
	f("no", arg("desde", "2027-03-01"), arg("hasta", "2028-03-01"))
	f("no", arg("desde", "2027-02-28")) // until today: a year and a day
	f("no", arg("hasta", "2028-02-29"))
	f("no", arg("desde", "2028-02-02"), arg("hasta", "2028-02-01"))
	f("no", arg("mes", "2028-02"), arg("desde", "2028-02-01"))
	f("no", arg("mes", "2028-02"), arg("hasta", "2028-02-01"))
}

// TestPeriodIsAYear: whatever is accepted begins today or before, ends where it
// begins or later, and has 366 days at most.
func TestPeriodIsAYear(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := time.Unix(rapid.Int64Range(946684800+86400, 4102444800).Draw(t, "now"), 0)
		day := func(name string) operation.Arg {
			d := civil.Of(now.AddDate(0, 0, rapid.IntRange(-800, 30).Draw(t, name)))
			return arg(name, d.String())
		}
		p, err := asked(t, now, day("desde"), day("hasta"))
		var invalid *operation.InvalidError
		if errors.As(err, &invalid) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if days := p.from.Days(p.to); days < 0 || days > 365 || civil.Of(now).Before(p.from) {
			t.Fatalf("%v to %v, %d days on", p.from, p.to, days)
		}
	})
}

// FuzzCursor: a cursor is one of the two forms that a page gives out, or refused.
func FuzzCursor(f *testing.F) {
	for _, text := range []string{"mov-0", "mov-9223372036854775807", "mov-9223372036854775808", "mov--1", "mov-", "COM-20261120-1a2b3c4d", "", "\x00"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		v, err := parseCursor(text)
		if err != nil {
			return
		}
		c := v.(cursor)
		if c.uses == (c.id != "") || c.id != "" && c.id != text || c.movement > 1<<63-1 {
			t.Fatalf("%q is read as %+v", text, c)
		}
	})
}
