package api

import (
	"bytes"
	"net"
	"net/netip"

	"github.com/valyala/fasthttp"
)

// maxHops bounds how many proxies of a request are looked at, the nearest first.
const maxHops = 16

// clientAddress tells where a request comes from: the peer, unless that is a
// trusted proxy. Then it is what that proxy says in X-Forwarded-For, or in
// Forwarded (RFC 7239) when there is no X-Forwarded-For: read from the right, the
// first address that is no trusted proxy. What stands left of it is whatever the
// client liked to send. Something unreadable ends the way, at the last proxy that
// was sure.
//
// The zero Addr is a peer that has no IP address.
func clientAddress(ctx *fasthttp.RequestCtx, trusted []netip.Prefix) netip.Addr {
	tcp, ok := ctx.RemoteAddr().(*net.TCPAddr)
	if !ok {
		return netip.Addr{}
	}
	client := plain(tcp.AddrPort().Addr())
	if len(trusted) == 0 || !among(client, trusted) {
		return client
	}
	parse := forwardedFor
	lines := ctx.Request.Header.PeekAll(fasthttp.HeaderXForwardedFor)
	if len(lines) == 0 {
		parse = forwarded
		lines = ctx.Request.Header.PeekAll(fasthttp.HeaderForwarded)
	}
	hops := 0
	for i := len(lines) - 1; i >= 0; i-- {
		for rest := lines[i]; rest != nil; hops++ {
			var element []byte
			if comma := bytes.LastIndexByte(rest, ','); comma >= 0 {
				rest, element = rest[:comma], rest[comma+1:]
			} else {
				rest, element = nil, rest
			}
			a, ok := parse(bytes.Trim(element, " \t"))
			if !ok || hops == maxHops {
				return client
			}
			if client = a; !among(client, trusted) {
				return client
			}
		}
	}
	return client
}

// plain is an address without a zone, and IPv4 as such: one client, one address.
func plain(a netip.Addr) netip.Addr { return a.Unmap().WithZone("") }

func among(a netip.Addr, prefixes []netip.Prefix) bool {
	for _, p := range prefixes {
		if p.Contains(a) {
			return true
		}
	}
	return false
}

// maxAddressText is the longest address with its brackets and port.
const maxAddressText = 64

// forwardedFor reads an element of X-Forwarded-For: an address, by some proxies
// with a port.
func forwardedFor(element []byte) (netip.Addr, bool) {
	if len(element) == 0 || len(element) > maxAddressText {
		return netip.Addr{}, false
	}
	text := string(element)
	a, err := netip.ParseAddr(text)
	if err != nil {
		var withPort netip.AddrPort
		if withPort, err = netip.ParseAddrPort(text); err == nil {
			a = withPort.Addr()
		} else if n := len(text); text[0] == '[' && text[n-1] == ']' {
			if a, err = netip.ParseAddr(text[1 : n-1]); err == nil && !a.Is6() {
				return netip.Addr{}, false
			}
		}
	}
	if err != nil || a.Zone() != "" {
		return netip.Addr{}, false
	}
	return plain(a), true
}

// forwarded reads an element of Forwarded: for=192.0.2.1, for="[2001:db8::1]:443".
// A name that hides the address (unknown, _x) is unreadable. A comma inside quotes
// would need one to be in an address.
func forwarded(element []byte) (netip.Addr, bool) {
	for pair := range bytes.SplitSeq(element, []byte{';'}) {
		name, value, _ := bytes.Cut(bytes.Trim(pair, " \t"), []byte{'='})
		if !bytes.EqualFold(name, []byte("for")) {
			continue
		}
		if n := len(value); n >= 2 && value[0] == '"' && value[n-1] == '"' {
			value = value[1 : n-1]
		}
		return forwardedFor(value)
	}
	return netip.Addr{}, false
}
