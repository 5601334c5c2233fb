package ledger

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"cotejo/store"
)

// An order is many verifications that are asked for at once. It is opened with what
// it may cost held, filled block by block, each with what paid for it, and ends when
// its last record is stored or when it is stopped. Whoever does the work may die at
// any moment: the next one reads how far it is and goes on.

// OrderPrefix begins the ids of orders. No record has it.
const OrderPrefix = "LOT"

// Bounds of an order.
const (
	// MaxOrderUnits is how many verifications an order may be for.
	MaxOrderUnits = maxOrdinal
	// MaxOrderInput bounds its terms, and each piece of its input, in bytes.
	MaxOrderInput = 64 << 10
	// MaxOrderPieces bounds the pieces of its input.
	MaxOrderPieces = 256
	// OrderLife is how long the input of an order is kept after its end, and its
	// answers can be asked for again.
	OrderLife = 7 * 24 * time.Hour

	maxOrdinal = 100_000
)

var (
	// ErrOrderEnded refuses to fill, hold or stop an order that ended.
	ErrOrderEnded = errors.New("ledger: el lote de consultas ya terminó")
	// errOther says that a block is not of the order that it names.
	errOther = errors.New("ledger: el bloque es de otro lote de consultas")
)

// OrdinalError refuses a block that is not the next of its order: nothing was
// written. Done is how far the order is.
type OrdinalError struct{ First, Done int }

func (e *OrdinalError) Error() string {
	return fmt.Sprintf("ledger: el bloque empieza en la consulta %d y el lote lleva guardadas %d", e.First, e.Done)
}

// OrderKey names an order.
type OrderKey struct {
	Org     OrgID
	Sandbox bool
	ID      VerificationID // with OrderPrefix
}

// OrderState tells whether an order goes on.
type OrderState byte

const (
	OrderOpen    OrderState = iota + 1 // not all records are stored
	OrderDone                          // all are
	OrderStopped                       // it will not go on
)

// Order is an order of verifications and how far it is.
type Order struct {
	OrderKey
	Opened    time.Time
	Service   string
	Operation string
	Edition   [32]byte
	Units     int    // verifications that were asked for
	Price     int64  // centavos of each that no use covers; 0: nothing is charged
	Steps     []Step // other prices from a later one on
	Pieces    int    // of its input

	State    OrderState
	Ended    time.Time // zero while open
	Reason   string    // of a stopped one
	Done     int       // records that are stored: those of the ordinals 1 to Done
	Hold     uint64    // the newest that pays, or paid; 0: none
	Uses     int64     // that paid so far
	Centavos int64     // of package money that paid so far
	// Forgotten says that its input is gone: its answers are no longer to be asked for
	// as an order. The records stay.
	Forgotten bool
}

// OpenOrder begins an order: what it is, its input and what holds its price are one
// durable write. Individual uses of the service cover the first positions, package
// money the rest, each at the price of its position. It refuses with *FundsError,
// which says how many units could be paid, with ErrTooManyHolds, and with
// ErrKeyReused. Its Result is an OrderOpened.
type OpenOrder struct {
	Now       time.Time
	ID        VerificationID // from NextID, with OrderPrefix
	Org       OrgID
	Sandbox   bool // then Price is 0
	Service   string
	Operation string
	Edition   [32]byte
	Units     int // 1 to MaxOrderUnits
	Price     int64
	Steps     []Step
	Until     time.Time // of the hold, see Hold; of no meaning if Price is 0
	// Terms and Input are kept for whoever does the work and told to nobody else. Each
	// piece has MaxOrderInput bytes at most.
	Terms []byte
	Input [][]byte
	// Once, if set, names the request: an order that was opened under it within
	// OnceLife is found before anything else is looked at.
	Once *Once
}

// OrderOpened is the Result of OpenOrder.
type OrderOpened struct {
	Held    Held  // what is reserved; zero if nothing is charged
	Balance int64 // centavos that can be spent beside it
	// Earlier is set when an order was opened under the same Once before: nothing was
	// written, and it is that order.
	Earlier *VerificationID
}

// FillOrder stores the next records of an order and pays for them from its hold: all
// of it is one durable write, so that a record is stored exactly once, and paid
// exactly if it is stored. The last ones end the order. It refuses with *OrdinalError
// a block that does not follow what is stored, with ErrOrderEnded, and with ErrNoHold
// when what was held is not there any more: see HoldOrder. Its Result is an OrderFilled.
type FillOrder struct {
	Now   time.Time
	Block *Block
}

// OrderFilled is the Result of FillOrder.
type OrderFilled struct {
	Done     int   // records of the order that are stored now
	Ended    bool  // these were the last
	Uses     int64 // that paid for this block
	Centavos int64 // of package money that paid for this block
	Balance  int64 // centavos that can be spent beside what is held
}

// StopOrder ends an order that cannot go on. What is stored stays paid, the rest of
// its hold goes back. It refuses with ErrOrderEnded. Its Result is a Held, of what was
// given back.
type StopOrder struct {
	Now    time.Time
	Order  OrderKey
	Reason string // of 1 to 2000 bytes
}

// HoldOrder holds anew what the rest of an order may cost, when its hold is over or
// covers less. Each position has the price that it had when the order was opened;
// individual uses that the account has cover the first of the rest. What is still held
// and covers the rest stays as it is. It refuses as Hold does, and with ErrOrderEnded. Its Result
// is a Held.
type HoldOrder struct {
	Now   time.Time
	Order OrderKey
	Until time.Time // see Hold
}

const orderKeyLen = ownerLen + 4 + 4

func (k *OrderKey) append(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint64(dst, uint64(k.Org))
	dst = append(dst, boolByte(k.Sandbox))
	dst = binary.BigEndian.AppendUint32(dst, k.ID.Day)
	return binary.BigEndian.AppendUint32(dst, k.ID.Counter)
}

// appendPart appends the key of a piece of the order's input, or of one of its blocks.
func (k *OrderKey) appendPart(dst []byte, number int) []byte {
	return binary.BigEndian.AppendUint32(k.append(dst), uint32(number))
}

func (o *Order) append(dst []byte) []byte {
	dst = append(dst, schema, byte(o.State))
	dst = appendMoment(dst, o.Opened)
	dst = appendText(dst, o.Service)
	dst = appendText(dst, o.Operation)
	dst = append(dst, o.Edition[:]...)
	for _, n := range [...]uint64{uint64(o.Units), uint64(o.Pieces), uint64(o.Price)} {
		dst = binary.AppendUvarint(dst, n)
	}
	dst = binary.AppendUvarint(dst, uint64(len(o.Steps)))
	for _, s := range o.Steps {
		dst = binary.AppendUvarint(dst, uint64(s.From))
		dst = binary.AppendUvarint(dst, uint64(s.Centavos))
	}
	for _, n := range [...]uint64{uint64(o.Done), o.Hold, uint64(o.Uses), uint64(o.Centavos)} {
		dst = binary.AppendUvarint(dst, n)
	}
	if o.State == OrderOpen {
		return dst
	}
	dst = appendMoment(dst, o.Ended)
	dst = appendText(dst, o.Reason)
	return append(dst, boolByte(o.Forgotten))
}

// decodeOrder reads an order; its key says whose it is.
func decodeOrder(key, value []byte, perm *permutation) (o Order, err error) {
	if len(key) != orderKeyLen {
		return o, errValue
	}
	o.Org, o.Sandbox = OrgID(binary.BigEndian.Uint64(key)), key[8] != 0
	o.ID = VerificationID{OrderPrefix, binary.BigEndian.Uint32(key[ownerLen:]), binary.BigEndian.Uint32(key[ownerLen+4:]), 0}
	if err := perm.complete(&o.ID); err != nil {
		return o, err
	}
	d := decode(value)
	o.State, o.Opened = OrderState(d.byte()), d.moment()
	o.Service, o.Operation = d.text(), d.text()
	copy(o.Edition[:], d.take(len(o.Edition)))
	o.Units, o.Pieces, o.Price = d.ordinal(), d.ordinal(), d.centavos()
	for range d.count(2) {
		o.Steps = append(o.Steps, Step{d.centavos(), d.centavos()})
	}
	o.Done, o.Hold, o.Uses, o.Centavos = d.ordinal(), d.uvarint(), d.centavos(), d.centavos()
	switch o.State {
	case OrderOpen:
	case OrderDone, OrderStopped:
		o.Ended, o.Reason, o.Forgotten = d.moment(), d.text(), d.byte() != 0
	default:
		d.fail()
	}
	return o, d.done()
}

func (o *Order) prices() prices { return prices{o.Price, o.Steps} }

// rest is what a hold of the order is for: the units behind those that are stored.
func (o *Order) rest(now, until time.Time) Hold {
	return Hold{Now: now, Org: o.Org, Service: o.Service, Units: int64(o.Units), Centavos: o.Price, Steps: o.Steps, Until: until}
}

// order reads one of the account's orders.
func (tx *Tx) order(k *OrderKey) (Order, error) {
	var room [orderKeyLen]byte
	key := k.append(room[:0])
	v, err := tx.Get(spaceOrder, key)
	if err != nil {
		return Order{}, err
	}
	return decodeOrder(key, v, tx.seq.l.perm)
}

func (tx *Tx) putOrder(o *Order) {
	var room [orderKeyLen]byte
	tx.value = o.append(tx.value[:0])
	tx.put(spaceOrder, o.OrderKey.append(room[:0]), tx.value)
}

// Apply implements Command.
func (c OpenOrder) Apply(tx *Tx) (Result, error) {
	if err := c.valid(tx); err != nil {
		return nil, err
	}
	var room [onceKeyLen]byte
	var onceKey []byte
	if c.Once != nil {
		onceKey = appendOnceKey(room[:0], c.Org, c.Sandbox, c.Once.Key)
		switch earlier, err := tx.earlier(onceKey, c.Once, c.Now); {
		case err != nil:
			return nil, err
		case earlier != nil && earlier.id.Prefix != OrderPrefix:
			return nil, ErrKeyReused
		case earlier != nil:
			return OrderOpened{Earlier: &earlier.id}, nil
		}
	}
	o := Order{
		OrderKey: OrderKey{c.Org, c.Sandbox, c.ID}, Opened: c.Now, Service: c.Service, Operation: c.Operation, Edition: c.Edition,
		Units: c.Units, Price: c.Price, Steps: c.Steps, Pieces: len(c.Input), State: OrderOpen,
	}
	if _, err := tx.order(&o.OrderKey); err == nil {
		return nil, ErrDuplicate
	} else if !errors.Is(err, store.ErrNotFound) {
		return nil, err
	}
	w := &tx.wallet
	if err := tx.loadWallet(w); err != nil {
		return nil, err
	}
	var opened OrderOpened
	if c.Price > 0 {
		h, err := o.rest(c.Now, c.Until), error(nil)
		if opened.Held, err = tx.hold(w, &h, 1); err != nil {
			return nil, err
		}
		o.Hold = opened.Held.Number
		tx.putWallet(w)
	}
	opened.Balance = w.spendable(c.Now)
	tx.putOrder(&o)
	for i := range len(c.Input) + 1 {
		piece := c.Terms
		if i > 0 {
			piece = c.Input[i-1]
		}
		var room [orderKeyLen + 4]byte
		tx.value = append(append(tx.value[:0], schema), piece...)
		tx.put(spaceOrderInput, o.appendPart(room[:0], i), tx.value)
	}
	if c.Once != nil {
		m := mark{content: c.Once.Content, moment: c.Now, id: c.ID}
		tx.value = m.append(tx.value[:0])
		tx.put(spaceOnce, onceKey, tx.value)
	}
	return opened, nil
}

func (c *OpenOrder) valid(tx *Tx) error {
	if tx.account == Global {
		return errNoWallet
	}
	if err := validMoment(c.Now); err != nil {
		return err
	}
	if c.ID.Prefix != OrderPrefix || !tx.seq.l.perm.given(&c.ID) {
		return fmt.Errorf("ledger: el identificador %v de un lote de consultas no salió de NextID", c.ID)
	}
	for _, s := range []string{c.Service, c.Operation} {
		if s == "" || len(s) > maxName {
			return fmt.Errorf("ledger: lote %v: servicio y operación llevan de 1 a %d bytes", c.ID, maxName)
		}
	}
	switch {
	case c.Units < 1 || c.Units > MaxOrderUnits:
		return fmt.Errorf("ledger: un lote lleva de 1 a %d consultas, no %d", MaxOrderUnits, c.Units)
	case len(c.Terms) > MaxOrderInput || len(c.Input) > MaxOrderPieces ||
		slices.ContainsFunc(c.Input, func(p []byte) bool { return len(p) > MaxOrderInput }):
		return fmt.Errorf("ledger: lote %v: términos y entradas llevan a lo más %d bytes cada uno, y son a lo más %d entradas", c.ID, MaxOrderInput, MaxOrderPieces)
	case c.Price == 0 && len(c.Steps) == 0:
		return nil
	case c.Sandbox:
		return errors.New("ledger: una consulta de prueba no se cobra")
	}
	o := Order{OrderKey: OrderKey{Org: c.Org}, Service: c.Service, Units: c.Units, Price: c.Price, Steps: c.Steps}
	h := o.rest(c.Now, c.Until)
	return h.valid(tx.account)
}

// Apply implements Command.
func (c StopOrder) Apply(tx *Tx) (Result, error) {
	if err := validMoment(c.Now); err != nil {
		return nil, err
	}
	if c.Reason == "" || len(c.Reason) > maxReason {
		return nil, fmt.Errorf("ledger: el motivo de detener un lote lleva de 1 a %d bytes", maxReason)
	}
	o, err := tx.order(&c.Order)
	if err != nil {
		return nil, err
	}
	if o.State != OrderOpen {
		return nil, ErrOrderEnded
	}
	var given Held
	if o.Hold != 0 {
		w := &tx.wallet
		if err := tx.loadWallet(w); err != nil {
			return nil, err
		}
		if at := w.holdAt(o.Hold); at >= 0 {
			given = w.holds[at].held()
			tx.release(w, at, c.Now)
			tx.advance(w, c.Now)
			tx.putWallet(w)
		}
	}
	o.State, o.Ended, o.Reason = OrderStopped, c.Now, c.Reason
	tx.putOrder(&o)
	return given, nil
}

// Apply implements Command.
func (c HoldOrder) Apply(tx *Tx) (Result, error) {
	if err := validMoment(c.Now); err != nil {
		return nil, err
	}
	o, err := tx.order(&c.Order)
	if err != nil {
		return nil, err
	}
	if o.State != OrderOpen {
		return nil, ErrOrderEnded
	}
	if o.Price == 0 {
		return Held{}, nil
	}
	h := o.rest(c.Now, c.Until)
	if err := h.valid(tx.account); err != nil {
		return nil, err
	}
	w := &tx.wallet
	if err := tx.loadWallet(w); err != nil {
		return nil, err
	}
	if at := w.holdAt(o.Hold); at >= 0 && !w.holds[at].lapsed(c.Now) {
		held := w.holds[at].held()
		if _, ok := o.pays(held, o.Done+1, o.Units); ok {
			return held, nil
		}
		tx.release(w, at, c.Now)
	}
	held, err := tx.hold(w, &h, int64(o.Done+1))
	if err != nil {
		return nil, err
	}
	tx.putWallet(w)
	o.Hold = held.Number
	tx.putOrder(&o)
	return held, nil
}
