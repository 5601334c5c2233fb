package api

import (
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"
)

// from is a request of a peer with header lines.
func from(peer string, headers ...string) *fasthttp.RequestCtx {
	var r fasthttp.Request
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Add(name, value)
	}
	ctx := new(fasthttp.RequestCtx)
	ctx.Init(&r, net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(peer), 4711)), nil)
	return ctx
}

var proxies = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("2001:db8:f::/48")}

func TestClientAddress(t *testing.T) {
	f := func(want, peer string, headers ...string) {
		t.Helper()
		if got := clientAddress(from(peer, headers...), proxies).String(); got != want {
			t.Errorf("%s %q: %s, want %s", peer, headers, got, want)
		}
	}
	const xff, fwd = "X-Forwarded-For: ", "Forwarded: "
	f("192.0.2.1", "192.0.2.1")
	f("192.0.2.1", "::ffff:192.0.2.1")
	f("fe80::1", "fe80::1%eth0")
	// Who is no proxy of ours may say what they like.
	f("192.0.2.1", "192.0.2.1", xff+"198.51.100.7")
	f("192.0.2.1", "192.0.2.1", fwd+"for=198.51.100.7")

	f("10.0.0.1", "10.0.0.1")
	f("198.51.100.7", "10.0.0.1", xff+"198.51.100.7")
	f("198.51.100.7", "::ffff:10.0.0.1", xff+"198.51.100.7")
	// What the client sent stands on the left.
	f("198.51.100.7", "10.0.0.1", xff+"203.0.113.9, 198.51.100.7")
	f("198.51.100.7", "10.0.0.1", xff+"10.9.9.9, 198.51.100.7, 10.0.0.2,10.0.0.3")
	f("198.51.100.7", "10.0.0.1", xff+"203.0.113.9", xff+"198.51.100.7", xff+"10.0.0.2")
	f("10.7.7.7", "10.0.0.1", xff+"10.7.7.7, 10.0.0.2")
	f("2001:db8::1", "2001:db8:f::1", xff+"2001:db8::1")
	f("2001:db8::1", "10.0.0.1", xff+"[2001:db8::1]:443")
	f("2001:db8::1", "10.0.0.1", xff+"[2001:db8::1]")
	f("198.51.100.7", "10.0.0.1", xff+"198.51.100.7:1234")
	f("198.51.100.7", "10.0.0.1", xff+"::ffff:198.51.100.7")
	// What cannot be read ends the way where it was still sure.
	f("10.0.0.2", "10.0.0.1", xff+"198.51.100.7, nada, 10.0.0.2")
	for _, bad := range []string{"", ",", "unknown", "1.2.3", "1.2.3.4.5", "0x7f.0.0.1", "[1.2.3.4]", "fe80::1%eth0", "[", "[]", "]", ":", "1.2.3.4:99999",
		strings.Repeat("1", 300), strings.Repeat("9,", 5000) + "x", "198.51.100.7,", "198.51.100.7\x00"} {
		f("10.0.0.1", "10.0.0.1", xff+bad)
	}
	f("10.0.0.2", "10.0.0.1", xff+strings.Repeat("198.51.100.7, ", 3)+strings.Repeat("10.0.0.2, ", maxHops)+"10.0.0.2")

	f("198.51.100.7", "10.0.0.1", fwd+"for=198.51.100.7")
	f("198.51.100.7", "10.0.0.1", fwd+`for=203.0.113.9, For="198.51.100.7:80";proto=https;by=10.0.0.1`)
	f("2001:db8::1", "10.0.0.1", fwd+`proto=https; for="[2001:db8::1]:4711"`)
	f("10.0.0.1", "10.0.0.1", fwd+"for=unknown")
	f("10.0.0.1", "10.0.0.1", fwd+"for=_x")
	f("10.0.0.1", "10.0.0.1", fwd+`for="`)
	f("10.0.0.1", "10.0.0.1", fwd+"by=198.51.100.7")
	// A proxy that writes X-Forwarded-For lets Forwarded of the client through.
	f("198.51.100.7", "10.0.0.1", fwd+"for=203.0.113.9", xff+"198.51.100.7")
	f("10.0.0.1", "10.0.0.1", fwd+"for=203.0.113.9", xff+"nada")
}

// FuzzClientAddress: whatever stands in the headers, who is answered is the peer, or
// an address that stands there.
func FuzzClientAddress(f *testing.F) {
	f.Add("203.0.113.9, 198.51.100.7", "for=198.51.100.7")
	f.Add("", `for="[2001:db8::1]:4711";by=_x, for=10.0.0.3`)
	f.Fuzz(func(t *testing.T, xff, fwd string) {
		if a := clientAddress(from("192.0.2.1", "X-Forwarded-For: "+xff, "Forwarded: "+fwd), proxies); a.String() != "192.0.2.1" {
			t.Fatalf("a stranger is believed: %s", a)
		}
		ctx := from("10.0.0.1")
		if xff != "" {
			ctx.Request.Header.Add("X-Forwarded-For", xff)
		}
		ctx.Request.Header.Add("Forwarded", fwd)
		a := clientAddress(ctx, proxies)
		if !a.IsValid() || a.Zone() != "" || a.Is4In6() {
			t.Fatalf("%q %q: %v", xff, fwd, a)
		}
	})
}

func TestClientAddressAllocatesNothing(t *testing.T) {
	ctx := from("192.0.2.1", "X-Forwarded-For: 198.51.100.7")
	if n := testing.AllocsPerRun(100, func() { clientAddress(ctx, proxies) }); n != 0 {
		t.Errorf("%v allocations without a proxy", n)
	}
}
