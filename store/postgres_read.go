package store

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	stmtGet, stmtSeq     = "get", "seq"
	stmtScan, stmtScanTo = "scan", "scan to"
)

// reading are the statements of a connection that reads.
var reading = map[string]string{
	stmtGet: "select v from cotejo_kv where grp = $1::int2 and k = $2::bytea",
	stmtScan: `select k, v from cotejo_kv
		where grp = $1::int2 and k >= $2::bytea order by grp, k limit $3::int8`,
	stmtScanTo: `select k, v from cotejo_kv
		where grp = $1::int2 and k >= $2::bytea and k < $4::bytea order by grp, k limit $3::int8`,
	stmtSeq: "select seq from cotejo_group where id = $1::int2",
}

// A scan takes pages, so that nobody holds a connection while its callback works.
// A page ends with the row that brings it to so many bytes; one that did makes the
// next ask for fewer rows.
const (
	firstPage = 32
	mostRows  = 1024
	pageBytes = 1 << 20
)

// postgresReader reads one group: the latest committed state through the pool, or
// the picture of a view.
type postgresReader struct {
	p     *Postgres
	group Group
	view  *postgresView // nil: the latest
}

// Reader implements Store.
func (p *Postgres) Reader(group Group) Reader { return &postgresReader{p: p, group: group} }

// on runs a statement that changes nothing. A connection that broke is tried again
// once, on another.
func (r *postgresReader) on(fn func(context.Context, *pgconn.PgConn) error) error {
	if r.view != nil {
		return r.view.on(fn)
	}
	err := r.p.call(r.p.read, fn)
	var refused *pgconn.PgError
	var broken *brokenError
	if errors.As(err, &broken) && (!errors.As(broken.err, &refused) || refused.SeverityUnlocalized == "FATAL") {
		err = r.p.call(r.p.read, fn)
	}
	if errors.As(err, &broken) {
		err = unavailable(broken.err)
	}
	return err
}

// brokenError is a driver's error on its way to whoever decides about a second
// attempt.
type brokenError struct{ err error }

func (e *brokenError) Error() string { return e.err.Error() }

func broken(err error) error {
	if err == nil {
		return nil
	}
	return &brokenError{err}
}

func (r *postgresReader) Get(key []byte) (value []byte, err error) {
	err = r.on(func(ctx context.Context, conn *pgconn.PgConn) error {
		got, err := row(conn.ExecPrepared(ctx, stmtGet, [][]byte{int2(uint8(r.group)), bound(key)}, binaryFormat, binaryFormat))
		switch {
		case err != nil:
			return broken(err)
		case got == nil:
			return ErrNotFound
		}
		value = got[0]
		return nil
	})
	return value, err
}

// bound is a key that is never null.
func bound(key []byte) []byte {
	if key == nil {
		return []byte{}
	}
	return key
}

// page is the part of a scan that is in memory.
type page struct {
	keys, values [][]byte
	full         bool // there may be more
}

func (r *postgresReader) Scan(lower, upper []byte, fn func(key, value []byte) error) error {
	lower = bound(lower)
	for rows := firstPage; ; {
		p, err := r.page(lower, upper, rows)
		if err != nil {
			return err
		}
		for i := range p.keys {
			if err := fn(p.keys[i], p.values[i]); err != nil {
				return err
			}
		}
		if !p.full {
			return nil
		}
		if n := len(p.keys); n < rows {
			rows = max(1, n)
		} else {
			rows = min(2*rows, mostRows)
		}
		lower = append(append(make([]byte, 0, len(p.keys[len(p.keys)-1])+1), p.keys[len(p.keys)-1]...), 0)
	}
}

// page reads at most so many rows from lower on.
func (r *postgresReader) page(lower, upper []byte, rows int) (p page, err error) {
	err = r.on(func(ctx context.Context, conn *pgconn.PgConn) error {
		p = page{}
		bytes := 0
		statement, values := stmtScan, [][]byte{int2(uint8(r.group)), lower, int8b(uint64(rows))}
		if upper != nil {
			statement, values = stmtScanTo, append(values, upper)
		}
		result := conn.ExecPrepared(ctx, statement, values, binaryFormat, binaryFormat)
		for result.NextRow() {
			if bytes >= pageBytes { // the rest is read and let go
				p.full = true
				continue
			}
			got := result.Values()
			room := make([]byte, 0, len(got[0])+len(got[1]))
			room = append(append(room, got[0]...), got[1]...)
			n := len(got[0])
			p.keys, p.values = append(p.keys, room[:n:n]), append(p.values, room[n:])
			bytes += len(room)
		}
		_, err := result.Close()
		return broken(err)
	})
	if len(p.keys) == rows {
		p.full = true
	}
	return p, err
}

// postgresView is a transaction that reads one snapshot.
type postgresView struct {
	postgresReader
	conn   *pgxpool.Conn
	opened time.Time
	seq    uint64
}

// View implements Store. It can be read from for PostgresOptions.ViewLife; while it
// is open the server cleans up nothing that it may show.
func (p *Postgres) View(group Group) (_ View, err error) {
	if group > Global {
		return nil, errGroup(group)
	}
	p.closing.RLock()
	defer p.closing.RUnlock()
	if p.closed {
		return nil, ErrClosed
	}
	ctx, cancel := context.WithTimeout(context.Background(), p.patience())
	defer cancel()
	conn, err := p.connection(ctx, p.views)
	if err != nil {
		return nil, err
	}
	v := &postgresView{conn: conn, opened: time.Now()}
	v.postgresReader = postgresReader{p, group, v}
	_, err = conn.Conn().PgConn().Exec(ctx, "begin isolation level repeatable read read only").ReadAll()
	var got [][]byte
	if err == nil {
		got, err = row(conn.Conn().PgConn().ExecPrepared(ctx, stmtSeq, [][]byte{int2(uint8(group))}, binaryFormat, binaryFormat))
	}
	if err != nil {
		return nil, errors.Join(unavailable(err), v.Close())
	}
	if len(got) != 1 || len(got[0]) != 8 {
		return nil, errors.Join(fmt.Errorf("%w: falta el grupo %d", ErrFormat, group), v.Close())
	}
	v.seq = binary.BigEndian.Uint64(got[0])
	return v, nil
}

func (v *postgresView) on(fn func(context.Context, *pgconn.PgConn) error) error {
	v.p.closing.RLock()
	defer v.p.closing.RUnlock()
	if v.p.closed {
		return ErrClosed
	}
	if time.Since(v.opened) > v.p.o.ViewLife {
		return fmt.Errorf("%w: la lectura duró más de %v", ErrUnavailable, v.p.o.ViewLife)
	}
	ctx, cancel := context.WithTimeout(context.Background(), v.p.patience())
	defer cancel()
	err := fn(ctx, v.conn.Conn().PgConn())
	var broken *brokenError
	if errors.As(err, &broken) {
		return unavailable(broken.err)
	}
	return err
}

func (v *postgresView) Seq() uint64 { return v.seq }

// Close implements View. The pool ends the connection of a transaction that could
// not be ended.
func (v *postgresView) Close() error {
	if v.conn == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), v.p.patience())
	defer cancel()
	_, _ = v.conn.Conn().PgConn().Exec(ctx, "rollback").ReadAll()
	v.conn.Release()
	v.conn = nil
	return nil
}
