package operation

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"cotejo/ledger"
)

func TestCheckKey(t *testing.T) {
	f := func(want string, values ...string) {
		t.Helper()
		var raw [][]byte
		for _, v := range values {
			raw = append(raw, []byte(v))
		}
		item := checkKey(raw)
		got := ""
		if item != nil {
			got = item.Type
			if where(*item) != "header.Idempotency-Key" || item.Input != nil || item.Msg == "" {
				t.Errorf("%q: %+v", values, item)
			}
		}
		if got != want {
			t.Errorf("%q: got %q, want %q", values, got, want)
		}
	}
	f("", "a")
	f("", "7d0f6c0e-6f5b-4c0b-9f0e-0d3f5a1b2c3d")
	f("", "!~")
	f("", strings.Repeat("x", 255))
	f("string_too_long", strings.Repeat("x", 256))
	f("string_too_short", "")
	f("string_pattern_mismatch", "a b")
	f("string_pattern_mismatch", "a\tb")
	f("string_pattern_mismatch", "a\x7f")
	f("string_pattern_mismatch", "ñ")
	f("value_error", "a", "a")
}

// What a request asks is the same whatever the order of its arguments, and
// nothing else is.
func TestContent(t *testing.T) {
	op, other := listing(), listing()
	other.ID = "otraCosa"
	request := func(op *Operation, body string, args ...Arg) *Request {
		return &Request{Operation: op, Args: args, Body: []byte(body)}
	}
	name, limit := Arg{InPath, "nombre", "abc"}, Arg{InQuery, "limite", "5"}
	base := appendContent(nil, request(&op, "", name, limit))
	f := func(same bool, r *Request) {
		t.Helper()
		if got := appendContent(nil, r); bytes.Equal(got, base) != same {
			t.Errorf("%s %+v %q: same is %v", r.Operation.ID, r.Args, r.Body, !same)
		}
	}
	f(true, request(&op, "", name, limit))
	f(true, request(&op, "", limit, name))
	f(false, request(&other, "", name, limit))
	f(false, request(&op, "{}", name, limit))
	f(false, request(&op, "", name))
	f(false, request(&op, "", name, limit, limit))
	f(false, request(&op, "", name, Arg{InQuery, "limite", "05"}))
	f(false, request(&op, "", name, limit, Arg{InQuery, "otro", ""}))
	f(false, request(&op, "", Arg{InQuery, "nombre", "abc"}, limit))
	f(false, request(&op, "", Arg{InPath, "nombreabc", ""}, limit))
	args := []Arg{limit, name}
	appendContent(nil, request(&op, "", args...))
	if args[0] != limit {
		t.Error("the arguments of the request were sorted")
	}
}

func TestRunning(t *testing.T) {
	var r running
	key := repeatable{account: 1, org: 2, key: [32]byte{3}}
	if err := r.begin(key, [32]byte{1}); err != nil {
		t.Fatal(err)
	}
	if err := r.begin(key, [32]byte{1}); !errors.Is(err, ErrKeyRunning) {
		t.Errorf("the same: %v", err)
	}
	if err := r.begin(key, [32]byte{2}); !errors.Is(err, ledger.ErrKeyReused) {
		t.Errorf("another under the key: %v", err)
	}
	test, sibling := key, key
	test.sandbox, sibling.org = true, 9
	for _, k := range []repeatable{test, sibling} {
		if err := r.begin(k, [32]byte{1}); err != nil {
			t.Errorf("%+v: %v", k, err)
		}
		r.end(k)
	}
	r.end(key)
	if err := r.begin(key, [32]byte{2}); err != nil {
		t.Errorf("afterwards: %v", err)
	}
	r.end(key)
	if len(r.keys) != 0 {
		t.Errorf("%d keys are left", len(r.keys))
	}
}
