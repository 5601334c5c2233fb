package store

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// postgresSchema is the number of the tables below. A program refuses a database
// with a higher one.
const postgresSchema = 1

// Texts are bytea too: neither the encoding nor the collation of a database can
// change what is compared or kept. Values are compressed already where it pays.
const createTables = `
create table cotejo_meta (
	single boolean primary key default true check (single),
	schema integer not null, format integer not null, id bytea not null);
create table cotejo_group (
	id smallint primary key, epoch bigint not null default 0, seq bigint not null default 0
	) with (fillfactor = 10);
create table cotejo_kv (
	grp smallint not null, k bytea not null, v bytea not null, primary key (grp, k)
	) with (fillfactor = 90);
alter table cotejo_kv alter column v set storage external;
create table cotejo_lease (
	single boolean primary key default true check (single),
	instance bytea not null default '', term bigint not null default 0,
	name bytea not null default '', url bytea not null default '',
	renewed timestamptz not null default '-infinity', expires timestamptz not null default '-infinity');
insert into cotejo_lease default values;
insert into cotejo_group (id) select generate_series(0, 16);
`

// schemaLock keeps two first starts from making the tables at once.
const schemaLock = 0x636f74656a6f

// prepareSchema makes the tables, or compares them with what this program knows.
func (p *Postgres) prepareSchema(ctx context.Context, config *pgxpool.Config) (err error) {
	ctx, cancel := context.WithTimeout(ctx, p.patience())
	defer cancel()
	conn, err := pgx.ConnectConfig(ctx, config.ConnConfig.Copy())
	if err != nil {
		return unavailable(err)
	}
	defer conn.Close(ctx)
	found, err := p.readMeta(ctx, conn)
	if err != nil || found {
		return err
	}
	if p.o.ReadOnly {
		return fmt.Errorf("%w: %s", ErrEmpty, p.where)
	}
	id := make([]byte, 16)
	rand.Read(id) // never fails (Go 1.24)
	// Held until the connection closes. Not in the transaction: that would go on with
	// what it knew of the tables before it waited.
	if _, err := conn.Exec(ctx, "select pg_advisory_lock($1)", int64(schemaLock)); err != nil {
		return unavailable(err)
	}
	tx, err := conn.Begin(ctx)
	if err != nil {
		return unavailable(err)
	}
	defer func() { _ = tx.Rollback(ctx) }() // after a commit it does nothing
	if found, err = p.readMeta(ctx, tx); err != nil || found {
		return err
	}
	_, err = tx.Exec(ctx, createTables)
	if err == nil {
		_, err = tx.Exec(ctx, "insert into cotejo_meta (schema, format, id) values ($1, $2, $3)", postgresSchema, p.o.Format, id)
	}
	if err == nil {
		err = tx.Commit(ctx)
	}
	if err != nil {
		return unavailable(err)
	}
	p.id = hex.EncodeToString(id)
	return nil
}

type querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// readMeta reports whether there are tables, and refuses those of another format.
func (p *Postgres) readMeta(ctx context.Context, q querier) (found bool, err error) {
	var exists bool
	if err := q.QueryRow(ctx, "select to_regclass('cotejo_meta') is not null").Scan(&exists); err != nil {
		return false, unavailable(err)
	}
	if !exists {
		return false, nil
	}
	var schema, format int
	var id []byte
	if err := q.QueryRow(ctx, "select schema, format, id from cotejo_meta").Scan(&schema, &format, &id); err != nil {
		return false, unavailable(err)
	}
	switch {
	case schema > postgresSchema:
		return false, fmt.Errorf("%w: %s tiene las tablas %d y este programa conoce hasta las %d: use la versión de cotejo que las escribió o una posterior",
			ErrFormat, p.where, schema, postgresSchema)
	case format != p.o.Format:
		return false, fmt.Errorf("%w: %s tiene el formato de datos %d y este programa usa el %d: use la versión de cotejo que la escribió",
			ErrFormat, p.where, format, p.o.Format)
	}
	p.id = hex.EncodeToString(id)
	return true, nil
}

// Health is what an operator should know of the server.
type Health struct {
	Version     string // of the server
	Checksums   bool   // of the pages on its disk
	Fsync       bool   // and full_page_writes
	Replicas    string // synchronous_standby_names; "": a failover may lose acknowledged writes
	Connections int    // that the server allows
	Bytes       int64  // of the table of keys
}

// Health asks the server how it keeps what it is given.
func (p *Postgres) Health() (h Health, err error) {
	const sql = `select current_setting('server_version'), current_setting('data_checksums'),
		(current_setting('fsync')::bool and current_setting('full_page_writes')::bool)::text,
		current_setting('synchronous_standby_names'), current_setting('max_connections'),
		pg_total_relation_size('cotejo_kv')::text`
	err = p.call(p.read, func(ctx context.Context, conn *pgconn.PgConn) error {
		got, err := row(conn.ExecParams(ctx, sql, nil, nil, nil, nil))
		if err != nil {
			return unavailable(err)
		}
		if len(got) != 6 {
			return errors.New("store: respuesta inesperada del servidor")
		}
		h.Version, h.Checksums, h.Fsync, h.Replicas = string(got[0]), string(got[1]) == "on", string(got[2]) == "true", string(got[3])
		h.Connections, _ = strconv.Atoi(string(got[4]))
		h.Bytes, _ = strconv.ParseInt(string(got[5]), 10, 64)
		return nil
	})
	return h, err
}

// ParsePostgresURL reads the address of a database: a host, or a folder of sockets as
// postgres:///base?host=/var/run/postgresql. Its error repeats nothing of the text.
func ParsePostgresURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" || u.Host == "" && u.Query().Get("host") == "" {
		return nil, fmt.Errorf("%w: la dirección no se entiende; es como postgres://usuario@servidor:5432/base", ErrFormat)
	}
	return u, nil
}

// ScratchPostgres makes an empty schema in the database that base names, for a bench
// or a test, and returns the address of it and what removes it.
func ScratchPostgres(ctx context.Context, base string) (scratch string, drop func(context.Context) error, err error) {
	u, err := ParsePostgresURL(base)
	if err != nil {
		return "", nil, err
	}
	name := "scratch_" + strings.ToLower(rand.Text())
	execute := func(ctx context.Context, sql string) error {
		conn, err := pgx.Connect(ctx, base)
		if err != nil {
			return unavailable(err)
		}
		defer conn.Close(ctx)
		if _, err := conn.Exec(ctx, sql); err != nil {
			return unavailable(err)
		}
		return nil
	}
	if err := execute(ctx, "create schema "+name); err != nil {
		return "", nil, err
	}
	q := u.Query()
	q.Set("search_path", name)
	u.RawQuery = q.Encode()
	return u.String(), func(ctx context.Context) error { return execute(ctx, "drop schema "+name+" cascade") }, nil
}
