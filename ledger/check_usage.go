package ledger

import "errors"

// checkedUsage is what the counts of an account must say.
type checkedUsage struct {
	days    int                // on which there are movements
	charged map[usageKey]Usage // by organization, ledger day and service
	records map[usageKey]int64 // by organization, mode and service
	answers map[usageKey]int64 // the same, as counted
}

func (u *checkedUsage) reset() {
	*u = checkedUsage{charged: map[usageKey]Usage{}, records: map[usageKey]int64{}, answers: map[usageKey]int64{}}
}

// spent takes a movement that paid for answers.
func (u *checkedUsage) spent(day uint32, m *Movement) {
	k := usageKey{org: m.Org, day: day, service: m.Service}
	row := u.charged[k]
	row.Charged += int64(m.Answers())
	row.Centavos -= m.Centavos
	row.Uses -= m.Uses
	u.charged[k] = row
}

// days tests that the notes of first movements are no more than there are days;
// each was looked at with its movement.
func (c *checker) days() error {
	n := 0
	err := c.at.Scan(spaceDay, nil, func(_, _ []byte) error {
		n++
		return nil
	})
	if n != c.usage.days {
		c.fault("hay %d días anotados y los movimientos son de %d", n, c.usage.days)
	}
	return err
}

// counts tests what is counted of each day.
func (c *checker) counts() error {
	err := c.at.Scan(spaceUsage, nil, func(key, value []byte) error {
		u, err := decodeUsage(key, value, "")
		if errors.Is(err, errValue) {
			c.fault("la cuenta de consultas %x es ilegible", key)
			return nil
		}
		k := usageKey{org: u.Org, day: u.Day, service: u.Service}
		var want Usage
		if !u.Sandbox {
			want = c.usage.charged[k]
			delete(c.usage.charged, k)
		}
		if u.Charged != want.Charged || u.Centavos != want.Centavos || u.Uses != want.Uses || u.Answers < u.Charged {
			c.fault("organización %d, %s del %d: se contaron %d consultas, %d cobradas, %d centavos y %d usos; los movimientos dicen %d, %d y %d",
				u.Org, u.Service, u.Day, u.Answers, u.Charged, u.Centavos, u.Uses, want.Charged, want.Centavos, want.Uses)
		}
		k.sandbox, k.day = u.Sandbox, 0
		c.usage.answers[k] += u.Answers
		return nil
	})
	for k, missing := range c.usage.charged {
		c.fault("organización %d, %s del %d: no se contaron %d consultas cobradas", k.org, k.service, k.day, missing.Charged)
	}
	for k, n := range c.usage.records {
		if counted := c.usage.answers[k]; counted < n {
			c.fault("organización %d, %s: hay %d registros y se contaron %d consultas", k.org, k.service, n, counted)
		}
	}
	return err
}
