package accounts

import (
	"fmt"
	"strings"

	"cotejo/ledger"
)

// orgPrefix and 13 Crockford base32 digits of 5 bits are the public form of an
// organization id: upper case, the highest bits first.
const (
	orgPrefix      = "org_"
	orgDigits      = 13
	crockfordUpper = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
)

var errOrg = fmt.Errorf("%w: organización: use el identificador tal como se le entregó, org_ y 13 caracteres", ErrInvalid)

// FormatOrg is the public form of an organization id: "org_" and 13 digits of
// Crockford base32.
func FormatOrg(id ledger.OrgID) string {
	return string(AppendOrg(make([]byte, 0, len(orgPrefix)+orgDigits), id))
}

// AppendOrg appends what FormatOrg returns.
func AppendOrg(dst []byte, id ledger.OrgID) []byte {
	dst = append(dst, orgPrefix...)
	for shift := 5 * (orgDigits - 1); shift >= 0; shift -= 5 {
		dst = append(dst, crockfordUpper[id>>shift&31])
	}
	return dst
}

// ParseOrg reads what FormatOrg prints, and nothing else.
func ParseOrg(s string) (ledger.OrgID, error) {
	if len(s) != len(orgPrefix)+orgDigits || s[:len(orgPrefix)] != orgPrefix {
		return 0, errOrg
	}
	var id ledger.OrgID
	for i, c := range []byte(s[len(orgPrefix):]) {
		digit := strings.IndexByte(crockfordUpper, c)
		if digit < 0 || i == 0 && digit > 15 {
			return 0, errOrg
		}
		id = id<<5 | ledger.OrgID(digit)
	}
	return id, nil
}
