package wallet

import (
	"slices"
	"time"

	"cotejo/civil"
	"cotejo/ledger"
)

// What test keys see: an account that bought a package and uses, and spent some of
// both. Its organization is 0, which nobody is; to whoever asks it is their own.

func syntheticAt(day, hour int) time.Time {
	return time.Date(2026, time.January, day, hour, 0, 0, 0, civil.Zone)
}

// synthetic is the wallet that syntheticTrail leaves.
func synthetic() ledger.Wallet {
	return ledger.Wallet{
		Balance: 476_00,
		Lots: []ledger.Lot{
			{Number: 1, Left: 476_00, Expires: syntheticAt(5, 9).Add(ledger.LotLife)},
			{Number: 2, Service: "COMPANY", Left: 9, Expires: syntheticAt(5, 10).Add(ledger.LotLife)},
		},
		Holds: []ledger.Held{{
			Number: 5, Service: "SCREEN", Until: syntheticAt(6, 13), Centavos: 12_00,
		}},
		Movements: 5,
	}
}

// syntheticTrail is in the order of the numbers.
var syntheticTrail = []ledger.Movement{{
	Number: 1, Moment: syntheticAt(5, 9), Kind: ledger.KindCredit, Centavos: 500_00, Balance: 500_00,
	Lots: []ledger.Split{{Lot: 1, Centavos: 500_00}}, Reason: "Paquete de prueba",
}, {
	Number: 2, Moment: syntheticAt(5, 10), Kind: ledger.KindCredit, Uses: 10, Balance: 500_00, Service: "COMPANY", Unit: 14_00,
	Lots: []ledger.Split{{Lot: 2, Uses: 10}}, Reason: "Usos de prueba",
}, {
	Number: 3, Moment: syntheticAt(6, 9), Kind: ledger.KindCharge, Uses: -1, Balance: 500_00, Service: "COMPANY",
	Lots: []ledger.Split{{Lot: 2, Uses: 1}}, Record: ledger.VerificationID{Prefix: "COM", Day: 20260106, Code: 0x5b1d0a3f},
}, {
	Number: 4, Moment: syntheticAt(6, 10), Kind: ledger.KindCharge, Centavos: -12_00, Balance: 488_00, Service: "SCREEN",
	Lots: []ledger.Split{{Lot: 1, Centavos: 12_00}}, Record: ledger.VerificationID{Prefix: "SCR", Day: 20260106, Code: 0x27c4e6b8},
}, {
	Number: 5, Moment: syntheticAt(6, 12), Kind: ledger.KindHold, Balance: 488_00, Service: "SCREEN",
	Lots: []ledger.Split{{Lot: 1, Centavos: 12_00}}, Until: syntheticAt(6, 13),
}}

// page shows a page of a trail that is in memory, the newest first.
func (a *answer) page(trail []ledger.Movement, p ledger.Page) {
	for i := range slices.Backward(trail) {
		if m := &trail[i]; p.Before == 0 || m.Number < p.Before {
			if a.add(m); len(a.Movements) == p.Limit {
				return
			}
		}
	}
}
