package api

import (
	"context"
	"sync/atomic"
	"time"
)

// deadlines gives each request a context that ends some time after it began. A
// timer for each request costs a microsecond and four allocations, so requests
// that begin within a tenth of the limit share one: theirs ends between limit and
// 1.1 times limit after they began.
type deadlines struct {
	limit   time.Duration
	current atomic.Pointer[deadline]
}

type deadline struct {
	context.Context
	cancel context.CancelFunc // for one that nobody got; the others end by themselves
	until  time.Time          // given to requests that begin before
}

// from returns the context of a request that began at now.
func (d *deadlines) from(now time.Time) context.Context {
	for {
		c := d.current.Load()
		if c != nil && now.Before(c.until) {
			return c
		}
		share := d.limit / 10
		next := &deadline{until: now.Add(share)}
		next.Context, next.cancel = context.WithDeadline(context.Background(), now.Add(d.limit+share))
		if d.current.CompareAndSwap(c, next) {
			return next
		}
		next.cancel()
	}
}
