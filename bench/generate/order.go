package generate

import (
	"hash/fnv"
	"math/rand/v2"
)

// order is a permutation of 0 to n-1: files do not name their taxpayers in the order
// of the pools.
type order struct{ n, step, from int }

func newOrder(seed uint64, n int) order {
	o := order{n: n, from: int(mix(seed) % uint64(max(n, 1)))}
	for o.step = n*61803/100000 + 1; gcd(o.step, n) != 1; {
		o.step++
	}
	return o
}

func (o order) at(i int) int { return (o.from + i*o.step) % o.n }

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// turn is what a row of a file is of.
type turn int

const (
	turnNew   turn = iota // a taxpayer who was not there yet
	turnAgain             // one who was
	turnOther             // neither
)

// turns says in a random order what the rows of a file are of, each kind exactly so
// many times.
type turns struct {
	random      *rand.Rand
	fresh       int // given out
	freshLeft   int
	repeatsLeft int
	othersLeft  int
}

func newTurns(seed uint64, source string, fresh, repeats, others int) *turns {
	h := fnv.New64a()
	h.Write([]byte(source))
	return &turns{random: rand.New(rand.NewPCG(seed, h.Sum64())), freshLeft: fresh, repeatsLeft: repeats, othersLeft: others}
}

// next is the kind of the next row and which taxpayer of the file it is of.
func (t *turns) next() (kind turn, at int) {
	n := t.random.IntN(t.freshLeft + t.repeatsLeft + t.othersLeft)
	switch {
	case n < t.freshLeft || t.fresh == 0 && t.freshLeft > 0:
		t.freshLeft--
		t.fresh++
		return turnNew, t.fresh - 1
	case n < t.freshLeft+t.repeatsLeft:
		t.repeatsLeft--
		return turnAgain, t.random.IntN(t.fresh)
	}
	t.othersLeft--
	return turnOther, 0
}
