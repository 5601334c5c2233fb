package ledger

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"cotejo/store"
)

// ErrIntegrity says that the stored ledger contradicts itself. The Report names
// where.
var ErrIntegrity = errors.New("ledger: los datos guardados no cuadran")

// Report is what Check looked at and found.
type Report struct {
	Accounts  int // with a wallet or records
	Movements int
	Records   int
	Orders    int
	Balance   int64 // centavos in all open lots and holds, of all accounts
	// Violations are the broken invariants, at most maxViolations of them.
	Violations []Violation
}

// Violation is one broken invariant.
type Violation struct {
	Account AccountID // 0: of the whole store
	What    string    // Spanish
}

func (v Violation) String() string {
	if v.Account == 0 {
		return v.What
	}
	return fmt.Sprintf("cuenta %d: %s", v.Account, v.What)
}

const maxViolations = 100

// Check reads the whole store, group by group as it was at one moment, and
// tests for every group that its chain has all links from its first one on, each
// following from the one before, up to the newest batch; and for every account:
//
//   - movements are numbered from 1 without gaps, each balance is the sum of all
//     movements up to it, and no sum is negative;
//   - replayed, the movements leave exactly the open lots of the wallet, of money
//     and of each service's uses; what paid is one use while there was one, and
//     money else; it was taken from the oldest expiry on and never from an expired
//     lot, an expiry took all that was left, and not before its date; the same of
//     holds: what each took from lots was paid, given back or is there;
//   - each charge has the one record that names it, and each charged record the
//     one movement; a use has a movement and no record;
//   - the blocks of an order hold its ordinals from 1 on without gap or overlap, each
//     position was paid by a use or at its price, by the one movement that names
//     it, and the order says how many there are and what they cost;
//   - each record decodes, its acta holds the SHA-256 of its registro and the id
//     of its key, and its id was leased before;
//   - what is counted of a day as charged is what its movements charged, and the
//     answers are no fewer than that, nor than the records; each day's first
//     movement is found by its note;
//   - what is remembered of a Once names a record of that organization and mode.
//
// It returns ErrIntegrity when one does not hold, ctx's error when ctx ends before,
// and the store's error when it cannot be read. It may run while a ledger writes.
func Check(ctx context.Context, s store.Store) (rep Report, err error) {
	c := checker{ctx: ctx, report: &rep}
	// The global group is read last: ids are leased before they are used.
	views := make([]store.View, 0, store.Groups+1)
	defer func() {
		for _, v := range views {
			if closed := v.Close(); err == nil {
				err = closed
			}
		}
	}()
	for g := range store.Group(store.Groups + 1) {
		v, err := s.View(g)
		if err != nil {
			return rep, err
		}
		views = append(views, v)
	}
	for g, v := range views {
		if err := c.chain(v, store.Group(g)); err != nil {
			return rep, err
		}
	}
	global := Reader{views[store.Global], Global, nil}
	key, err := readIDKey(global)
	if errors.Is(err, store.ErrNotFound) {
		for _, v := range views {
			if v.Seq() > 0 {
				c.fault("falta la llave de los identificadores")
				break
			}
		}
		return rep, c.verdict() // if nothing was written, never opened by a ledger
	}
	if err != nil {
		return rep, err
	}
	if c.perm, err = newPermutation(key); err != nil {
		return rep, err
	}
	c.leases = map[string]lease{}
	err = global.Scan(spaceLease, nil, func(prefix, value []byte) error {
		var v lease
		if v.decode(value) != nil {
			c.fault("los identificadores apartados para %s son ilegibles", prefix)
		}
		c.leases[string(prefix)] = v
		return nil
	})
	if err != nil {
		return rep, err
	}
	if _, err := readLease(global, spaceRestored, ""); errors.Is(err, errValue) {
		c.fault("es ilegible desde dónde se dan identificadores después de restaurar")
	} else if err != nil {
		return rep, err
	}
	for _, v := range views[:store.Groups] {
		err := scanAccounts(v, func(account AccountID) error { return c.account(Reader{v, account, c.perm}) })
		if err != nil {
			return rep, err
		}
	}
	return rep, c.verdict()
}

func (c *checker) verdict() error {
	if found := c.report.Violations; len(found) > 0 {
		return fmt.Errorf("%w: %d faltas; la primera: %v", ErrIntegrity, len(found), found[0])
	}
	return nil
}

type checker struct {
	ctx    context.Context
	perm   *permutation
	leases map[string]lease
	report *Report

	at    Reader // the account at hand
	open  wallet // the lots that the movements leave
	sum   int64
	last  uint64
	paid  Movement // that was looked at last
	usage checkedUsage
}

func (c *checker) fault(format string, args ...any) {
	if len(c.report.Violations) < maxViolations {
		c.report.Violations = append(c.report.Violations, Violation{c.at.account, fmt.Sprintf(format, args...)})
	}
}

func (c *checker) account(r Reader) error {
	if err := c.ctx.Err(); err != nil {
		return err
	}
	c.at, c.open, c.sum, c.last, c.paid = r, wallet{}, 0, 0, Movement{}
	c.usage.reset()
	before := c.report.Movements + c.report.Records
	var w wallet
	v, err := r.Get(spaceWallet, nil)
	if err == nil {
		if w.decode(v) != nil {
			c.fault("el saldo guardado es ilegible")
		}
	} else if !errors.Is(err, store.ErrNotFound) {
		return err
	}
	if err := r.Movements(Page{}, c.movement); err != nil {
		if !errors.Is(err, errValue) {
			return err
		}
		c.fault("el movimiento que sigue al %d es ilegible", c.last)
	}
	if c.last != w.last {
		c.fault("el saldo cuenta %d movimientos y hay %d", w.last, c.last)
	}
	if w.sum() != c.sum {
		c.fault("los abonos con saldo suman %d centavos y los movimientos %d", w.sum(), c.sum)
	}
	if !slices.Equal(c.open.lots, w.lots) {
		c.fault("los abonos con saldo son %v y los movimientos dejan %v", w.lots, c.open.lots)
	}
	if !slices.EqualFunc(c.open.holds, w.holds, func(a, b hold) bool {
		return a.held() == b.held() && slices.Equal(a.lots, b.lots)
	}) {
		c.fault("las retenciones abiertas son %v y los movimientos dejan %v", w.holds, c.open.holds)
	}
	if c.open.day != w.day {
		c.fault("el saldo dice que su último día es %d y los movimientos llegan al %d", w.day, c.open.day)
	}
	if err := errors.Join(c.records(), c.blocks(), c.orders(), c.once(), c.days(), c.counts()); err != nil {
		return err
	}
	c.report.Balance += c.sum
	if c.report.Movements+c.report.Records > before || v != nil {
		c.report.Accounts++
	}
	return nil
}

// find reads what a record says beside its text, which records reads.
func (c *checker) find(id VerificationID, org OrgID) (r Record, err error) {
	value, err := c.at.Get(spaceRecord, appendRecordKey(nil, org, false, id))
	if err != nil {
		return r, err
	}
	d := decode(value)
	if r.decodeHead(&d); d.bad {
		err = errValue
	}
	return r, err
}

func (c *checker) records() error {
	dictionary := c.at.lastDictionary()
	return c.at.Scan(spaceRecord, nil, func(key, value []byte) error {
		c.report.Records++
		if err := c.ctx.Err(); err != nil {
			return err
		}
		r, err := decodeRecord(key, value, c.perm, dictionary)
		if errors.Is(err, errValue) {
			c.fault("%v", err)
			return nil
		}
		if err != nil {
			return err
		}
		c.usage.records[usageKey{org: r.Org, sandbox: r.Sandbox, service: r.Service}]++
		c.record(&r)
		return nil
	})
}

func (c *checker) record(r *Record) {
	var acta struct {
		ID     string `json:"verification_id"`
		SHA256 string `json:"registro_sha256"`
	}
	if err := json.Unmarshal(r.Acta, &acta); err != nil {
		c.fault("registro %v: el acta no es JSON: %v", r.ID, err)
	}
	sum := sha256.Sum256(r.Registro)
	if want := hex.EncodeToString(sum[:]); acta.SHA256 != want {
		c.fault("registro %v: el acta dice SHA-256 %q y el registro tiene %s", r.ID, acta.SHA256, want)
	}
	if acta.ID != r.ID.String() {
		c.fault("registro %v: el acta dice %q", r.ID, acta.ID)
	}
	if v := c.leases[r.ID.Prefix]; !v.gave(&r.ID) {
		c.fault("registro %v: su identificador no estaba apartado", r.ID)
	}
	if r.Movement == 0 {
		if r.Centavos != 0 {
			c.fault("registro %v: %d centavos sin movimiento", r.ID, r.Centavos)
		}
		return
	}
	if c.paid.Number != r.Movement { // a movement of an order pays many
		var err error
		if c.paid, err = c.at.Movement(r.Movement); err != nil {
			c.fault("registro %v: su movimiento %d: %v", r.ID, r.Movement, err)
			return
		}
	}
	if !c.paid.Covers(r) {
		c.fault("registro %v: el movimiento %d es de otro registro", r.ID, r.Movement)
	}
}
