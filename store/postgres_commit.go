package store

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/jackc/pgx/v5/pgconn"
)

const (
	stmtCommit, stmtAcquire = "commit", "acquire"
	stmtTake, stmtHandOver  = "take", "hand over"
	stmtHolder              = "holder"
)

// writing are the statements of a connection that writes.
//
// A commit is one statement, because a fence in a statement of its own stops
// nothing that follows it. The rows of its groups are locked in ascending order,
// so that two writers cannot wait for each other; then all of them are raised, if
// epoch and seq are the expected ones; where fewer rows were raised than groups
// were named, a division by zero ends the statement and nothing of it is left.
// The writes select from that fence, so they come after it.
var writing = map[string]string{
	stmtCommit: `
with held as materialized (
	select id from cotejo_group where id = any($1::int2[]) order by id for update),
raised as (
	update cotejo_group g set seq = u.seq
	from unnest($1::int2[], $2::int8[], $3::int8[]) as u(id, epoch, seq)
	where (select count(*) from held) = cardinality($1::int2[])
	and g.id = u.id and g.epoch = u.epoch and g.seq = u.seq - 1
	returning 1),
fence as materialized (
	select 1 / (count(*) = cardinality($1::int2[]))::int as open from raised),
put as (
	insert into cotejo_kv as t (grp, k, v)
	select u.grp, u.k, u.v from fence, unnest($4::int2[], $5::bytea[], $6::bytea[]) as u(grp, k, v) where fence.open = 1
	on conflict (grp, k) do update set v = excluded.v),
gone as (
	delete from cotejo_kv t using fence, unnest($7::int2[], $8::bytea[]) as u(grp, k)
	where fence.open = 1 and t.grp = u.grp and t.k = u.k)
select open from fence`,

	// Whoever has the lease cannot lose it before the epoch is raised.
	stmtAcquire: `
with mine as materialized (
	select 1 from cotejo_lease where instance = $2::bytea and term = $3::int8 for share)
update cotejo_group set epoch = epoch + 1
where id = $1::int2 and ($3::int8 = 0 or exists (select 1 from mine))
returning epoch, seq`,

	stmtTake:     takeLease,
	stmtHandOver: handOverLease,
	stmtHolder:   leaseHolder,
}

// sqlDivisionByZero is how the fence of a commit refuses.
const sqlDivisionByZero = "22012"

// Acquire implements Store. With a lease (see Take) it is ErrFenced when another
// process holds it.
func (p *Postgres) Acquire(group Group) (epoch, seq uint64, err error) {
	if group > Global {
		return 0, 0, errGroup(group)
	}
	if p.o.ReadOnly {
		return 0, 0, ErrReadOnly
	}
	instance, term := p.lease.needed()
	err = p.call(p.write, func(ctx context.Context, conn *pgconn.PgConn) error {
		got, err := row(conn.ExecPrepared(ctx, stmtAcquire,
			[][]byte{int2(uint8(group)), []byte(instance), int8b(term)}, binaryFormat, binaryFormat))
		switch {
		case err != nil:
			return unavailable(err)
		case len(got) != 2 || len(got[0]) != 8 || len(got[1]) != 8:
			return fmt.Errorf("%w: el turno es de otro", ErrFenced)
		}
		epoch, seq = binary.BigEndian.Uint64(got[0]), binary.BigEndian.Uint64(got[1])
		if warning := unreplicated(conn); warning != nil { // what is before it may be gone too
			return fmt.Errorf("%w: %w", ErrUnavailable, warning)
		}
		return nil
	})
	return epoch, seq, err
}

// serialAttempts is how often a commit is tried that the server asked to repeat:
// nothing of it was written.
const serialAttempts = 5

// Commit implements Store. All batches are one statement.
func (p *Postgres) Commit(batches ...Batch) (err error) {
	if p.o.ReadOnly {
		return ErrReadOnly
	}
	if !slices.IsSortedFunc(batches, byGroup) {
		batches = slices.Clone(batches)
		slices.SortFunc(batches, byGroup)
	}
	for i := range batches {
		if g := batches[i].Group; g > Global {
			return errGroup(g)
		} else if i > 0 && batches[i-1].Group == g {
			return fmt.Errorf("store: dos lotes del grupo %d en una escritura", g)
		}
	}
	w := wires.Get().(*wire)
	defer w.release()
	w.encode(batches)
	return p.call(p.write, func(ctx context.Context, conn *pgconn.PgConn) error {
		if len(batches) == 0 {
			return nil
		}
		for attempt := 1; ; attempt++ {
			result := conn.ExecPrepared(ctx, stmtCommit, w.values[:], binaryFormat, binaryFormat).Read()
			err := outcome(result)
			if warning := unreplicated(conn); err == nil && warning != nil {
				err = fmt.Errorf("%w: %w", ErrUnknown, warning)
			}
			if attempt == serialAttempts || !repeatable(result.Err) {
				return err
			}
		}
	})
}

func byGroup(a, b Batch) int { return int(a.Group) - int(b.Group) }

// repeatable reports that the server took everything back because of another
// writer.
func repeatable(err error) bool {
	var refused *pgconn.PgError
	return errors.As(err, &refused) && (refused.Code == "40001" || refused.Code == "40P01")
}

// outcome tells what became of a commit.
func outcome(result *pgconn.Result) error {
	err := result.Err
	var refused *pgconn.PgError
	switch {
	case err == nil && len(result.Rows) == 1:
		return nil
	case err == nil:
		return fmt.Errorf("%w: respuesta inesperada", ErrUnknown)
	case pgconn.SafeToRetry(err):
		return unavailable(err)
	case !errors.As(err, &refused):
		return fmt.Errorf("%w: se cortó la conexión", ErrUnknown)
	case refused.Code == sqlDivisionByZero:
		return ErrFenced
	case takenBack(refused):
		return unavailable(err)
	}
	return fmt.Errorf("%w: %s (SQLSTATE %s)", ErrUnknown, refused.Message, refused.Code)
}

// takenBack reports that an error of the server came before the commit. A server
// that ends a connection, or a canceled wait, may say so after it.
func takenBack(err *pgconn.PgError) bool {
	if err.SeverityUnlocalized != "ERROR" || len(err.Code) != 5 {
		return false
	}
	switch err.Code[:2] {
	case "08", "57", "58", "XX":
		return false
	}
	return err.Code != "40003"
}

// wire is a commit as it is sent: arrays in the binary format.
type wire struct {
	id, epoch, seq, putGroup, key, value, goneGroup, gone []byte
	values                                                [8][]byte
}

var wires = sync.Pool{New: func() any { return new(wire) }}

// release keeps the room, unless it is large: a rare batch must not hold memory
// for ever.
func (w *wire) release() {
	if cap(w.value) <= 8<<20 {
		wires.Put(w)
	}
}

const oidBytea, oidInt2, oidInt8 = 17, 21, 20

func (w *wire) encode(batches []Batch) {
	puts, deletes := 0, 0
	for i := range batches {
		puts += len(batches[i].Puts)
		deletes += len(batches[i].Deletes)
	}
	w.id = appendArray(w.id[:0], oidInt2, len(batches))
	w.epoch = appendArray(w.epoch[:0], oidInt8, len(batches))
	w.seq = appendArray(w.seq[:0], oidInt8, len(batches))
	w.putGroup = appendArray(w.putGroup[:0], oidInt2, puts)
	w.key = appendArray(w.key[:0], oidBytea, puts)
	w.value = appendArray(w.value[:0], oidBytea, puts)
	w.goneGroup = appendArray(w.goneGroup[:0], oidInt2, deletes)
	w.gone = appendArray(w.gone[:0], oidBytea, deletes)
	for i := range batches {
		b := &batches[i]
		group := [6]byte{3: 2, 5: byte(b.Group)}
		w.id = append(w.id, group[:]...)
		w.epoch = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint32(w.epoch, 8), b.Epoch)
		w.seq = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint32(w.seq, 8), b.Seq)
		for j := range b.Puts {
			w.putGroup = append(w.putGroup, group[:]...)
			w.key = appendElement(w.key, b.Puts[j].Key)
			w.value = appendElement(w.value, b.Puts[j].Value)
		}
		for _, key := range b.Deletes {
			w.goneGroup = append(w.goneGroup, group[:]...)
			w.gone = appendElement(w.gone, key)
		}
	}
	w.values = [8][]byte{w.id, w.epoch, w.seq, w.putGroup, w.key, w.value, w.goneGroup, w.gone}
}

// appendArray begins an array of one dimension without nulls, of none when it is
// empty.
func appendArray(dst []byte, oid uint32, n int) []byte {
	dimensions := uint32(1)
	if n == 0 {
		dimensions = 0
	}
	dst = binary.BigEndian.AppendUint32(dst, dimensions)
	dst = binary.BigEndian.AppendUint32(dst, 0)
	dst = binary.BigEndian.AppendUint32(dst, oid)
	if n > 0 {
		dst = binary.BigEndian.AppendUint32(dst, uint32(n))
		dst = binary.BigEndian.AppendUint32(dst, 1)
	}
	return dst
}

func appendElement(dst, element []byte) []byte {
	return append(binary.BigEndian.AppendUint32(dst, uint32(len(element))), element...)
}
