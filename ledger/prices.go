package ledger

import "fmt"

// maxSteps bounds the steps of a price.
const maxSteps = 16

// prices says what each unit costs, counted from 1: first, until a step says
// otherwise.
type prices struct {
	first int64
	steps []Step
}

func (p prices) valid() error {
	if len(p.steps) > maxSteps {
		return fmt.Errorf("ledger: un precio lleva a lo más %d escalones, no %d", maxSteps, len(p.steps))
	}
	last := Step{1, p.first}
	for i := -1; ; i++ {
		if last.Centavos <= 0 || last.Centavos > MaxCentavos {
			return fmt.Errorf("ledger: el precio de cada unidad debe ser de 1 a %d centavos, no de %d", MaxCentavos, last.Centavos)
		}
		if i+1 == len(p.steps) {
			return nil
		}
		if p.steps[i+1].From <= last.From {
			return fmt.Errorf("ledger: el escalón desde la unidad %d no sigue al de la %d", p.steps[i+1].From, last.From)
		}
		last = p.steps[i+1]
	}
}

// stretch is the price of a unit, and the last unit that costs as much.
func (p prices) stretch(unit int64) (centavos, last int64) {
	centavos = p.first
	for _, s := range p.steps {
		if s.From > unit {
			return centavos, s.From - 1
		}
		centavos = s.Centavos
	}
	return centavos, MaxHoldUnits
}

// cost is that of the units from from to to, both included.
func (p prices) cost(from, to int64) (centavos int64) {
	for from <= to {
		price, last := p.stretch(from)
		last = min(last, to)
		centavos += price * (last - from + 1)
		from = last + 1
	}
	return centavos
}

// affordable is how many of the units from from to to a balance pays.
func (p prices) affordable(from, to, balance int64) (units int64) {
	for from <= to {
		price, last := p.stretch(from)
		n := min(min(last, to)-from+1, balance/price)
		units += n
		balance -= n * price
		if from += n; from <= min(last, to) {
			break
		}
	}
	return units
}
