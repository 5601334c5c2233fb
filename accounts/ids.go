package accounts

import (
	"fmt"
	"strings"

	"cotejo/ledger"
)

// A prefix and 13 Crockford base32 digits of 5 bits are the public form of an
// account or organization id: upper case, the highest bits first.
const (
	orgPrefix      = "org_"
	accountPrefix  = "cta_"
	idDigits       = 13
	crockfordUpper = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
)

var (
	errOrg     = fmt.Errorf("%w: organización: use el identificador tal como se le entregó, org_ y 13 caracteres", ErrInvalid)
	errAccount = fmt.Errorf("%w: cuenta: use el identificador tal como se le entregó, cta_ y 13 caracteres", ErrInvalid)
)

// FormatOrg is the public form of an organization id: "org_" and 13 digits of
// Crockford base32.
func FormatOrg(id ledger.OrgID) string {
	return string(AppendOrg(make([]byte, 0, len(orgPrefix)+idDigits), id))
}

// AppendOrg appends what FormatOrg returns.
func AppendOrg(dst []byte, id ledger.OrgID) []byte { return appendID(dst, orgPrefix, uint64(id)) }

// FormatAccount is the public form of an account id: "cta_" and 13 digits of
// Crockford base32.
func FormatAccount(id ledger.AccountID) string {
	return string(appendID(nil, accountPrefix, uint64(id)))
}

func appendID(dst []byte, prefix string, id uint64) []byte {
	dst = append(dst, prefix...)
	for shift := 5 * (idDigits - 1); shift >= 0; shift -= 5 {
		dst = append(dst, crockfordUpper[id>>shift&31])
	}
	return dst
}

// ParseOrg reads what FormatOrg prints, and nothing else.
func ParseOrg(s string) (ledger.OrgID, error) {
	id, ok := parseID(s, orgPrefix)
	if !ok {
		return 0, errOrg
	}
	return ledger.OrgID(id), nil
}

// ParseAccount reads what FormatAccount prints, and nothing else. ErrInvalid for the
// global group's own space, which is no account.
func ParseAccount(s string) (ledger.AccountID, error) {
	id, ok := parseID(s, accountPrefix)
	if !ok || ledger.AccountID(id) == ledger.Global {
		return 0, errAccount
	}
	return ledger.AccountID(id), nil
}

func parseID(s, prefix string) (id uint64, ok bool) {
	if len(s) != len(prefix)+idDigits || s[:len(prefix)] != prefix {
		return 0, false
	}
	for i, c := range []byte(s[len(prefix):]) {
		digit := strings.IndexByte(crockfordUpper, c)
		if digit < 0 || i == 0 && digit > 15 {
			return 0, false
		}
		id = id<<5 | uint64(digit)
	}
	return id, true
}
