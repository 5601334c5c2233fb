package store

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// Node is who asks for the lease.
type Node struct {
	// Instance tells this node from any other and stays the same over its restarts:
	// a node that was killed need not wait for its own lease to end. Not empty.
	Instance string
	Name     string // for people
	URL      string // where it answers; may be empty
}

// Holder is who has the lease.
type Holder struct {
	Node
	Left time.Duration // until it ends, by the server's clock; not above zero: it ended
}

// lease is what this process knows of the one lease of a database: who has it owns
// all groups, and nobody else can take them.
type lease struct {
	asking sync.Mutex // one question at a time

	mu       sync.Mutex // never held while the server is asked
	instance string
	term     uint64 // 0: never taken
	until    time.Time
}

// mine names the lease that was held last; term 0: none ever.
func (l *lease) mine() (instance string, term uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.instance, l.term
}

// noTerm is the term of no lease.
const noTerm = math.MaxInt64

// needed names the lease that Acquire asks for; term 0: it needs none.
func (l *lease) needed() (instance string, term uint64) {
	instance, term = l.mine()
	if instance != "" && term == 0 {
		term = noTerm
	}
	return instance, term
}

func (l *lease) set(instance string, term uint64, until time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.instance, l.term, l.until = instance, term, until
}

// takeLease renews the lease of a node, or takes one that ended. $5 is the term
// that the node holds, 0 before it held any: then it may have held one before it
// was restarted, and nobody else has.
const takeLease = `
update cotejo_lease set instance = $1::bytea, name = $2::bytea, url = $3::bytea,
	renewed = clock_timestamp(), expires = clock_timestamp() + $4::int8 * interval '1 millisecond',
	term = case when instance = $1::bytea and term = $5::int8 then term else term + 1 end
where (instance = $1::bytea and (term = $5::int8 or $5::int8 = 0)) or expires <= clock_timestamp()
returning term`

const handOverLease = `
update cotejo_lease set expires = '-infinity' where instance = $1::bytea and term = $2::int8`

const leaseHolder = `
select instance, name, url,
	(case when isfinite(expires) then extract(epoch from expires - clock_timestamp()) * 1000 else 0 end)::int8
from cotejo_lease`

// Take takes or renews the lease for ttl and returns its term, 0 when another node
// has it: Holder says who. A term that is not the one before was not held without a
// gap. From then on Acquire is refused to who does not have the lease.
func (p *Postgres) Take(n Node, ttl time.Duration) (term uint64, err error) {
	if p.o.ReadOnly {
		return 0, ErrReadOnly
	}
	p.lease.asking.Lock()
	defer p.lease.asking.Unlock()
	_, before := p.lease.mine()
	asked := time.Now()
	err = p.call(p.write, func(ctx context.Context, conn *pgconn.PgConn) error {
		got, err := row(conn.ExecPrepared(ctx, stmtTake, [][]byte{
			[]byte(n.Instance), []byte(n.Name), []byte(n.URL), int8b(uint64(ttl.Milliseconds())), int8b(before),
		}, binaryFormat, binaryFormat))
		if err != nil {
			return unavailable(err)
		}
		if len(got) == 0 {
			p.lease.set(n.Instance, before, time.Time{})
			return nil
		}
		term = binary.BigEndian.Uint64(got[0])
		p.lease.set(n.Instance, term, asked.Add(ttl-ttl/10))
		return nil
	})
	return term, err
}

// Held reports whether this process surely has the lease of that term: nobody can
// have taken it as long as the clocks of this machine and of the server run alike to
// a tenth. It asks nobody.
func (p *Postgres) Held(term uint64) bool {
	l := &p.lease
	l.mu.Lock()
	defer l.mu.Unlock()
	return term != 0 && l.term == term && time.Now().Before(l.until)
}

// HandOver ends the lease, if this process has it: another may take it at once.
func (p *Postgres) HandOver() error {
	p.lease.asking.Lock()
	defer p.lease.asking.Unlock()
	instance, term := p.lease.mine()
	if term == 0 {
		return nil
	}
	p.lease.set(instance, term, time.Time{})
	return p.call(p.write, func(ctx context.Context, conn *pgconn.PgConn) error {
		result := conn.ExecPrepared(ctx, stmtHandOver, [][]byte{[]byte(instance), int8b(term)}, binaryFormat, nil).Read()
		if result.Err != nil {
			return unavailable(result.Err)
		}
		return nil
	})
}

// Holder says who has the lease, or had it last.
func (p *Postgres) Holder() (h Holder, err error) {
	err = p.call(p.write, func(ctx context.Context, conn *pgconn.PgConn) error {
		got, err := row(conn.ExecPrepared(ctx, stmtHolder, nil, nil, binaryFormat))
		if err != nil {
			return unavailable(err)
		}
		if len(got) != 4 || len(got[3]) != 8 {
			return errors.Join(ErrFormat, fmt.Errorf("store: falta el turno"))
		}
		h = Holder{
			Node: Node{string(got[0]), string(got[1]), string(got[2])},
			Left: time.Duration(int64(binary.BigEndian.Uint64(got[3]))) * time.Millisecond,
		}
		return nil
	})
	return h, err
}
