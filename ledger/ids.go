package ledger

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"cotejo/civil"
	"cotejo/store"
)

// VerificationID is `<PREFIX>-<YYYYMMDD>-<8 hex>`; the hex is a keyed
// permutation of Counter, so ids do not tell how many there were.
type VerificationID struct {
	Prefix  string // three capital letters
	Day     uint32 // YYYYMMDD, Mexico City
	Counter uint32
	Code    uint32
}

const idLen = 3 + 1 + 8 + 1 + 8

// AppendTo appends the text form.
func (id VerificationID) AppendTo(dst []byte) []byte {
	dst = append(dst, id.Prefix...)
	dst = append(dst, '-')
	for p := uint32(10_000_000); p > 0; p /= 10 {
		dst = append(dst, '0'+byte(id.Day/p%10))
	}
	dst = append(dst, '-')
	for shift := 28; shift >= 0; shift -= 4 {
		dst = append(dst, "0123456789abcdef"[id.Code>>shift&15])
	}
	return dst
}

// String returns the text form.
func (id VerificationID) String() string { return string(id.AppendTo(make([]byte, 0, idLen))) }

func validPrefix(s string) bool {
	return len(s) == 3 && isCapital(s[0]) && isCapital(s[1]) && isCapital(s[2])
}

func isCapital(c byte) bool { return 'A' <= c && c <= 'Z' }

func validDay(day uint32) bool {
	_, ok := civil.New(int(day/10000), time.Month(day/100%100), int(day%100))
	return ok && day < 100_000_000
}

// ParseID reads an id's text form; ok is false for anything that could not have
// come from NextID.
func (l *Ledger) ParseID(s string) (id VerificationID, ok bool) {
	return l.perm.parse(s)
}

func (p *permutation) parse(s string) (id VerificationID, ok bool) {
	if len(s) != idLen || !validPrefix(s[:3]) || s[3] != '-' || s[12] != '-' {
		return VerificationID{}, false
	}
	if p.block.Load() == nil { // nothing was ever written here, so no id was given
		return VerificationID{}, false
	}
	var day, code uint32
	for _, c := range []byte(s[4:12]) {
		if c < '0' || c > '9' {
			return VerificationID{}, false
		}
		day = day*10 + uint32(c-'0')
	}
	for _, c := range []byte(s[13:]) {
		switch {
		case '0' <= c && c <= '9':
			code = code<<4 | uint32(c-'0')
		case 'a' <= c && c <= 'f':
			code = code<<4 | uint32(c-'a'+10)
		default:
			return VerificationID{}, false
		}
	}
	if !validDay(day) {
		return VerificationID{}, false
	}
	return VerificationID{s[:3], day, p.counter(s[:3], day, code), code}, true
}

// permutation maps counters to codes and back: a Feistel network over two
// halves of 16 bits whose round function is AES-256 of (round, half, prefix,
// day). Its key is stored once and never rotated: ids in the world depend on it.
type permutation struct {
	block atomic.Pointer[cipher.Block] // nil until the key is known
}

// rounds of the network; even, so that the halves end where they began. Four
// make a strong pseudorandom permutation (Luby and Rackoff), and what it hides
// is only how many ids there were.
const rounds = 4

// blocks are reused: one on the stack would escape through cipher.Block.
var blocks = sync.Pool{New: func() any { return new([aes.BlockSize]byte) }}

func newPermutation(key []byte) (*permutation, error) {
	p := new(permutation)
	return p, p.use(key)
}

// use sets the key. It is the same one each time.
func (p *permutation) use(key []byte) error {
	if len(key) != 32 {
		return errValue
	}
	block, err := aes.NewCipher(key)
	if err == nil {
		p.block.Store(&block)
	}
	return err
}

func (p *permutation) code(prefix string, day, counter uint32) uint32 {
	l, r := uint16(counter>>16), uint16(counter)
	for round := range byte(rounds) {
		l, r = r, l^p.round(prefix, day, round, r)
	}
	return uint32(l)<<16 | uint32(r)
}

// complete sets the code of an id that was read without.
func (p *permutation) complete(id *VerificationID) error {
	if !validPrefix(id.Prefix) || !validDay(id.Day) {
		return errValue
	}
	id.Code = p.code(id.Prefix, id.Day, id.Counter)
	return nil
}

// given reports that an id is one of NextID's.
func (p *permutation) given(id *VerificationID) bool {
	return validPrefix(id.Prefix) && validDay(id.Day) && p.code(id.Prefix, id.Day, id.Counter) == id.Code
}

func (p *permutation) counter(prefix string, day, code uint32) uint32 {
	l, r := uint16(code>>16), uint16(code)
	for round := byte(rounds); round > 0; round-- {
		l, r = r^p.round(prefix, day, round-1, l), l
	}
	return uint32(l)<<16 | uint32(r)
}

func (p *permutation) round(prefix string, day uint32, round byte, half uint16) uint16 {
	b := blocks.Get().(*[aes.BlockSize]byte)
	defer blocks.Put(b)
	*b = [aes.BlockSize]byte{round, byte(half >> 8), byte(half)}
	copy(b[3:6], prefix)
	binary.BigEndian.PutUint32(b[6:], day)
	(*p.block.Load()).Encrypt(b[:], b[:])
	return binary.BigEndian.Uint16(b[:])
}

func readIDKey(r Reader) ([]byte, error) {
	v, err := r.Get(spaceIDKey, nil)
	if err != nil {
		return nil, err
	}
	d := decode(v)
	key := d.take(32)
	return key, d.done()
}

type putIDKey struct{ key []byte }

func (c putIDKey) Apply(tx *Tx) (Result, error) {
	tx.put(spaceIDKey, nil, append([]byte{schema}, c.key...))
	return nil, nil
}

// leaseLength is how many ids of a prefix and day are taken at once, at most:
// durably before the first is given, so that none is given twice after a crash.
const leaseLength = 65_536

// idsADay is how many codes a prefix has in a day.
const idsADay = 1 << 32

// issuers hand out the leased counters, by prefix.
type issuers struct {
	mu       sync.Mutex
	byPrefix map[string]*issuer
}

// issuer holds what is left of the last lease. mu is held while a new one is
// taken: whoever comes meanwhile needs it too.
type issuer struct {
	mu sync.Mutex
	leased
}

// leased is counters of one day that one process may give.
type leased struct {
	day       uint32
	next, end uint64
}

func (i *issuers) of(prefix string) *issuer {
	i.mu.Lock()
	defer i.mu.Unlock()
	iss := i.byPrefix[prefix]
	if iss == nil {
		if i.byPrefix == nil {
			i.byPrefix = make(map[string]*issuer)
		}
		iss = new(issuer)
		i.byPrefix[prefix] = iss
	}
	return iss
}

// NextID returns an id that no other call on this data, or on what it was restored
// from (see Restored), ever returned, for the later of now's civil day and the
// last day used. ErrExhausted after 2^32 ids of a prefix in a day.
func (l *Ledger) NextID(ctx context.Context, prefix string, now time.Time) (VerificationID, error) {
	id, _, err := l.NextIDs(ctx, prefix, now, 1)
	return id, err
}

// NextIDs is NextID for n ids of one day with consecutive counters, or for as many as
// count says, at least one, when a lease ends before. It returns the first of them.
func (l *Ledger) NextIDs(ctx context.Context, prefix string, now time.Time, n int) (first VerificationID, count int, err error) {
	if !validPrefix(prefix) {
		return first, 0, fmt.Errorf("ledger: el prefijo %q no son tres letras mayúsculas", prefix)
	}
	if n < 1 {
		return first, 0, fmt.Errorf("ledger: se piden %d identificadores", n)
	}
	if err := validMoment(now); err != nil {
		return first, 0, err
	}
	today := civil.Of(now).Compact()
	iss := l.ids.of(prefix)
	iss.mu.Lock()
	defer iss.mu.Unlock()
	if iss.next == iss.end || today > iss.day {
		res, err := l.Do(ctx, Global, leaseIDs{prefix, max(today, iss.day)})
		if err != nil {
			return first, 0, err
		}
		iss.leased = res.(leased)
	}
	first = VerificationID{Prefix: prefix, Day: iss.day, Counter: uint32(iss.next)}
	count = int(min(uint64(n), iss.end-iss.next))
	iss.next += uint64(count)
	first.Code = l.perm.code(prefix, first.Day, first.Counter)
	return first, count, nil
}

// lease is the stored state of a prefix: all counters below next are taken on
// day, and no day after it was ever used.
type lease struct {
	day  uint32
	next uint64
}

// before reports that w takes counters that v has not.
func (v lease) before(w lease) bool { return v.day < w.day || v.day == w.day && v.next < w.next }

// gave reports that an id of the lease's prefix was leased.
func (v lease) gave(id *VerificationID) bool {
	return id.Day < v.day || id.Day == v.day && uint64(id.Counter) < v.next
}

func (v *lease) append(dst []byte) []byte {
	dst = append(dst, schema)
	dst = binary.BigEndian.AppendUint32(dst, v.day)
	return binary.AppendUvarint(dst, v.next)
}

func (v *lease) decode(value []byte) error {
	d := decode(value)
	v.day, v.next = d.uint32(), d.uvarint()
	return d.done()
}

// leaseIDs takes ids of the later of day and the last day leased, up to the next
// multiple of leaseLength. Its result is a leased.
type leaseIDs struct {
	prefix string
	day    uint32
}

func (c leaseIDs) Apply(tx *Tx) (Result, error) {
	v, err := readLease(tx, spaceLease, c.prefix)
	if err != nil {
		return nil, err
	}
	restored, err := readLease(tx, spaceRestored, "")
	if err != nil {
		return nil, err
	}
	for _, w := range []lease{{day: c.day}, restored} {
		if v.before(w) {
			v = w
		}
	}
	b := leased{v.day, v.next, (v.next/leaseLength + 1) * leaseLength}
	if b.end > idsADay {
		return nil, ErrExhausted
	}
	v.next = b.end
	tx.put(spaceLease, []byte(c.prefix), v.append(nil))
	return b, nil
}

// readLease returns the zero lease, which is before any other, when there is none.
func readLease(from interface {
	Get(space Space, key []byte) ([]byte, error)
}, space Space, key string) (v lease, err error) {
	stored, err := from.Get(space, []byte(key))
	if errors.Is(err, store.ErrNotFound) {
		return v, nil
	} else if err != nil {
		return v, err
	}
	err = v.decode(stored)
	return v, err
}
