package main

import (
	"net/netip"
	"strconv"
	"strings"

	"cotejo/accesslog"
	"cotejo/operation"
	"cotejo/ratelimit"
)

// throttle is how often one caller may ask.
func (c configuration) throttle() (operation.Throttle, error) {
	keys, err := c.rate("limite_llave")
	if err != nil {
		return operation.Throttle{}, err
	}
	addresses, err := c.rate("limite_direccion")
	if err != nil {
		return operation.Throttle{}, err
	}
	return operation.NewThrottle(keys, addresses, ratelimit.Monotonic())
}

// rate is a setting that NewThrottle can read; empty is no limit.
func (c configuration) rate(key string) (string, error) {
	text := c.get(key)
	if text == "" {
		text = "0"
	}
	if _, _, err := ratelimit.ParseRate(text); err != nil {
		return "", exitWith(exitConfig, "%s: %w", key, err)
	}
	return text, nil
}

// maxProxies bounds the list: each is compared with every request.
const maxProxies = 64

// trustedProxies reads a list of networks and addresses, separated by commas.
func (c configuration) trustedProxies() ([]netip.Prefix, error) {
	var all []netip.Prefix
	for text := range strings.SplitSeq(c.get("trusted_proxies"), ",") {
		text = strings.TrimSpace(text)
		if text == "" {
			continue
		}
		p, err := netip.ParsePrefix(text)
		if a, noPrefix := netip.ParseAddr(text); err != nil && noPrefix == nil && a.Zone() == "" {
			p, err = netip.PrefixFrom(a, a.BitLen()), nil
		}
		switch {
		case err != nil || p.Addr().Is4In6():
			return nil, exitWith(exitConfig, "trusted_proxies: «%s» no es una red como 10.0.0.0/8 ni una dirección", text)
		case p.Bits() == 0:
			return nil, exitWith(exitConfig, "trusted_proxies: «%s» es cualquiera: así cada cliente diría de dónde viene; ponga las redes de sus proxies", text)
		case len(all) == maxProxies:
			return nil, exitWith(exitConfig, "trusted_proxies: más de %d redes", maxProxies)
		}
		all = append(all, p.Masked())
	}
	return all, nil
}

// keepAccesses is how much of the access log is kept.
func (c configuration) keepAccesses() (accesslog.Keep, error) {
	days, err := c.accessDays()
	if err != nil {
		return accesslog.Keep{}, err
	}
	most, err := c.accessBytes()
	return accesslog.Keep{Days: days, Bytes: most}, err
}

// accessDays is for how many civil days; empty is 0, for ever.
func (c configuration) accessDays() (int, error) {
	const most = 3660
	text := c.get("accesos_dias")
	if text == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most {
		return 0, exitWith(exitConfig, "accesos_dias: «%s» no es un número de días de 1 a %d", text, most)
	}
	return n, nil
}

// accessBytes is up to which size; empty is 0, without a limit.
func (c configuration) accessBytes() (int64, error) {
	text := strings.TrimSpace(c.get("accesos_max"))
	if text == "" {
		return 0, nil
	}
	n, ok := size(text)
	if !ok {
		return 0, exitWith(exitConfig, "accesos_max: «%s» no es un tamaño como 4GiB o 500MB, ni 0", text)
	}
	return int64(n), nil
}
