package operation

import (
	"fmt"

	"cotejo/accounts"
)

// CheckOnly refuses operations that a key of a mode cannot be limited to, because there
// are none of that id, or because no such key is let in there anyway: a mistyped id
// would make a key that opens nothing. The error is an accounts.ErrInvalid.
func (t Table) CheckOnly(mode accounts.Mode, ids []string) error {
	for _, id := range ids {
		op := t.Find(id)
		switch {
		case op == nil:
			return fmt.Errorf("%w: operaciones: no existe «%.64s»; use los operationId de /openapi.json", accounts.ErrInvalid, id)
		case op.Auth == Open:
			return fmt.Errorf("%w: operaciones: %s no pide llave", accounts.ErrInvalid, id)
		case op.Auth == Registration, (op.Auth == Admin) != (mode == accounts.Admin):
			return fmt.Errorf("%w: operaciones: a %s no entra una llave de este modo", accounts.ErrInvalid, id)
		}
	}
	return nil
}
