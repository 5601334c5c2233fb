package store

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// PostgresOptions are what differs between installations and tests. The zero
// value of a duration or of a count is a server's.
type PostgresOptions struct {
	// Format is the number of the layout of the data directory: a database is bound
	// to it when it is made, and refused under another.
	Format int
	// ReadOnly opens a database that exists for looking at it: Acquire, Commit and
	// the lease return ErrReadOnly.
	ReadOnly bool

	Connect   time.Duration // longest wait for a connection; 3 s
	Statement time.Duration // longest statement on the server; 3 s. Half of it waits for a lock
	Readers   int           // connections for reading; 8
	Views     int           // views that may be open at once; 24
	ViewLife  time.Duration // how long a view can be read from; 1 h
}

func (o *PostgresOptions) fill() {
	if o.Connect == 0 {
		o.Connect = 3 * time.Second
	}
	if o.Statement == 0 {
		o.Statement = 3 * time.Second
	}
	if o.Readers == 0 {
		o.Readers = 8
	}
	if o.Views == 0 {
		o.Views = 24
	}
	if o.ViewLife == 0 {
		o.ViewLife = time.Hour
	}
}

// writers is how many connections write. The sequencer uses one at a time; the
// others are for the lease and for an Acquire beside a statement that hangs.
const writers = 4

// Postgres is the engine for several machines: tables in a PostgreSQL database,
// which any number of processes may read and whose groups one process owns. What
// it returns when the server is away is ErrUnavailable or ErrUnknown, and it goes
// on when the server is back.
type Postgres struct {
	o     PostgresOptions
	where string
	id    string
	// Three pools, so that readers never keep the sequencer from writing, nor views
	// the readers from reading.
	write, read, views *pgxpool.Pool

	// closing is read-locked by each call that uses a connection.
	closing sync.RWMutex
	closed  bool // under closing

	lease lease
}

// OpenPostgres connects to the database that url names (see ParsePostgresURL) and
// makes the tables at the first use. ErrUnavailable when nobody answers, ErrFormat
// when the tables are of another format or of a newer program. No error tells the
// password.
func OpenPostgres(ctx context.Context, url string, o PostgresOptions) (_ *Postgres, err error) {
	o.fill()
	p := &Postgres{o: o}
	if _, err := ParsePostgresURL(url); err != nil {
		return nil, err
	}
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		// What the parser says may repeat a part of the text.
		return nil, fmt.Errorf("%w: un parámetro de la dirección no se entiende", ErrFormat)
	}
	p.where = fmt.Sprintf("%s@%s/%s", config.ConnConfig.User,
		net.JoinHostPort(config.ConnConfig.Host, strconv.Itoa(int(config.ConnConfig.Port))), config.ConnConfig.Database)
	p.configure(config)
	if err := p.prepareSchema(ctx, config); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			p.closePools()
		}
	}()
	pool := func(n int, statements map[string]string, idle time.Duration) (*pgxpool.Pool, error) {
		c := config.Copy()
		c.MaxConns = int32(n)
		c.ConnConfig.RuntimeParams["idle_in_transaction_session_timeout"] = millis(idle)
		c.ConnConfig.AfterConnect = func(ctx context.Context, conn *pgconn.PgConn) error {
			for name, sql := range statements {
				if _, err := conn.Prepare(ctx, name, sql, nil); err != nil {
					return err
				}
			}
			return nil
		}
		return pgxpool.NewWithConfig(ctx, c)
	}
	if p.write, err = pool(writers, writing, o.Statement); err != nil {
		return nil, unavailable(err)
	}
	if p.read, err = pool(o.Readers, reading, o.Statement); err != nil {
		return nil, unavailable(err)
	}
	if p.views, err = pool(o.Views, reading, o.ViewLife); err != nil {
		return nil, unavailable(err)
	}
	return p, nil
}

// configure sets what every connection asks of the server, over what the address
// says.
func (p *Postgres) configure(c *pgxpool.Config) {
	dialer := &net.Dialer{Timeout: p.o.Connect, KeepAliveConfig: net.KeepAliveConfig{
		Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 3,
	}}
	c.ConnConfig.DialFunc = dialer.DialContext
	c.ConnConfig.OnNotice = func(conn *pgconn.PgConn, n *pgconn.Notice) {
		if n.SeverityUnlocalized == "WARNING" {
			conn.CustomData()[warned] = n.Message
		}
	}
	c.ConnConfig.ConnectTimeout = p.o.Connect
	c.MaxConnIdleTime = 5 * time.Minute
	c.MaxConnLifetime = time.Hour
	c.PingTimeout = p.o.Connect
	for key, value := range map[string]string{
		"application_name":   "cotejo",
		"client_encoding":    "UTF8",
		"synchronous_commit": "on",
		"statement_timeout":  millis(p.o.Statement),
		"lock_timeout":       millis(p.o.Statement / 2),
		// A client that vanished must not hold a group's row for ever.
		"tcp_keepalives_idle": "15", "tcp_keepalives_interval": "5", "tcp_keepalives_count": "3",
		"tcp_user_timeout": "30000",
		// Every statement is a few probes of one index, whatever the statistics say,
		// and none is long enough for a compiler.
		"enable_seqscan": "off", "enable_hashjoin": "off", "enable_mergejoin": "off",
		"plan_cache_mode": "force_generic_plan", "jit": "off",
	} {
		c.ConnConfig.RuntimeParams[key] = value
	}
}

// warned is where a connection keeps the last warning of the server.
const warned = "warned"

// unreplicated returns the warning that came with a write, nil when there was none. A
// server that stops waiting for its replica reports success and a warning: the write
// is there, and gone if that replica is promoted.
func unreplicated(conn *pgconn.PgConn) error {
	message, found := conn.CustomData()[warned]
	if !found {
		return nil
	}
	delete(conn.CustomData(), warned)
	return fmt.Errorf("aviso del servidor: %s", message)
}

func millis(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// Where names the database: user, server and name, never the password.
func (p *Postgres) Where() string { return p.where }

// ID tells this database from any other. It stays the same for its life, also
// through a dump and a restore.
func (p *Postgres) ID() string { return p.id }

// patience bounds a call, the server's own limits included.
func (p *Postgres) patience() time.Duration { return p.o.Connect + p.o.Statement }

// call runs fn on a connection of the pool. An error of the pool is
// ErrUnavailable: fn did not run.
func (p *Postgres) call(pool *pgxpool.Pool, fn func(context.Context, *pgconn.PgConn) error) error {
	p.closing.RLock()
	defer p.closing.RUnlock()
	if p.closed {
		return ErrClosed
	}
	ctx, cancel := context.WithTimeout(context.Background(), p.patience())
	defer cancel()
	conn, err := p.connection(ctx, pool)
	if err != nil {
		return err
	}
	err = fn(ctx, conn.Conn().PgConn())
	cut := conn.Conn().IsClosed()
	conn.Release()
	if cut { // whatever cut it has cut the others too: none of them is worth a try
		pool.Reset()
	}
	return err
}

// connection waits for a connection for as long as it may take to make one.
func (p *Postgres) connection(ctx context.Context, pool *pgxpool.Pool) (*pgxpool.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, p.o.Connect)
	defer cancel()
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return nil, unavailable(err)
	}
	return conn, nil
}

// unavailable hides what a driver's error may tell and keeps what helps.
func unavailable(err error) error {
	var refused *pgconn.PgError
	var connecting *pgconn.ConnectError
	switch {
	case errors.As(err, &refused):
		return fmt.Errorf("%w: %s (SQLSTATE %s)", ErrUnavailable, refused.Message, refused.Code)
	case errors.As(err, &connecting): // address and reason
		return fmt.Errorf("%w: %s", ErrUnavailable, strings.ReplaceAll(connecting.Unwrap().Error(), "\n", "; "))
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%w: no contestó a tiempo, o todas las conexiones están ocupadas", ErrUnavailable)
	}
	return fmt.Errorf("%w: se cortó la conexión", ErrUnavailable)
}

// Close implements Store. Views must be closed before.
func (p *Postgres) Close() error {
	p.closing.Lock()
	defer p.closing.Unlock()
	if p.closed {
		return nil
	}
	p.closed = true
	p.closePools()
	return nil
}

func (p *Postgres) closePools() {
	for _, pool := range []*pgxpool.Pool{p.write, p.read, p.views} {
		if pool != nil {
			pool.Close()
		}
	}
}

// Parameters and results travel in binary.
var binaryFormat = []int16{1}

func int2(n uint8) []byte   { return []byte{0, n} }
func int8b(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

// row reads the only row of a statement, nil when it gave none. The values are
// copies.
func row(result *pgconn.ResultReader) ([][]byte, error) {
	got := result.Read()
	if got.Err != nil || len(got.Rows) == 0 {
		return nil, got.Err
	}
	return got.Rows[0], nil
}
