package main

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
)

// order is one line of lotes.jsonl: verifications that were asked for at once.
type order struct {
	Centavos int64  `json:"centavos"`
	Units    int    `json:"consultas"`
	Edition  string `json:"edicion_sha256"`
	Prices   []step `json:"escalones"`
	State    string `json:"estado"`
	Done     int    `json:"guardadas"`
	ID       string `json:"lote_id"`
	Service  string `json:"service"`
	Uses     int64  `json:"usos"`
}

// step is what each verification costs from a position on.
type step struct {
	Centavos int64 `json:"centavos"`
	From     int   `json:"desde"`
}

// charge is one line of cargos.jsonl: what paid for consecutive verifications.
type charge struct {
	Centavos int64    `json:"centavos"`
	From     int      `json:"desde"`
	To       int      `json:"hasta"`
	Order    string   `json:"lote_id"`
	Movement *uint64  `json:"movimiento"`
	Unit     int64    `json:"precio_unitario"`
	Uses     int64    `json:"usos"`
	Records  []string `json:"verificaciones"`
}

// running is an order as far as its charges were read.
type running struct {
	order
	line           int
	done           int
	uses, centavos int64
	movement       uint64 // the newest
}

// checkOrders tests that the charges of each order cover its positions from 1 on, each
// once, at the price of the position or by a use, that they are of answers that are
// here and of its edition, and that the sums are those that the order says.
func checkOrders(dir fs.FS, answers map[string]answered, r *report) error {
	orders := map[string]*running{}
	var list []*running
	what := func(file string, line int, id, format string, args ...any) {
		r.fault("%s, línea %d (%s): %s", file, line, id, fmt.Sprintf(format, args...))
	}
	err := eachLine(dir, "lotes.jsonl", r, func(n int, text []byte) {
		o := &running{line: n}
		if err := decodeStrict(text, &o.order); err != nil {
			what("lotes.jsonl", n, o.ID, "%v", err)
			return
		}
		if fault := o.alone(); fault != "" {
			what("lotes.jsonl", n, o.ID, "%s", fault)
		}
		if orders[o.ID] != nil {
			what("lotes.jsonl", n, o.ID, "ya está en otra línea")
		}
		orders[o.ID] = o
		list = append(list, o)
	})
	if err != nil {
		return err
	}
	paid := map[string]bool{}
	charges := 0
	err = eachLine(dir, "cargos.jsonl", r, func(n int, text []byte) {
		charges++
		var c charge
		if err := decodeStrict(text, &c); err != nil {
			what("cargos.jsonl", n, c.Order, "%v", err)
			return
		}
		o := orders[c.Order]
		if o == nil {
			what("cargos.jsonl", n, c.Order, "lotes.jsonl no lo tiene")
			return
		}
		if fault := o.pay(&c); fault != "" {
			what("cargos.jsonl", n, c.Order, "%s", fault)
		}
		for _, id := range c.Records {
			a, here := answers[id]
			switch {
			case !here:
				what("cargos.jsonl", n, c.Order, "falta la respuesta %s", id)
			case paid[id]:
				what("cargos.jsonl", n, c.Order, "%s ya está en otro cargo", id)
			case a.edition != o.Edition || !strings.HasPrefix(a.motor, o.Service+"/"):
				what("cargos.jsonl", n, c.Order, "%s es de otra edición o de otro servicio", id)
			}
			paid[id] = true
		}
	})
	if err != nil {
		return err
	}
	for _, o := range list {
		if o.done != o.Done || o.uses != o.Uses || o.centavos != o.Centavos {
			what("lotes.jsonl", o.line, o.ID, "dice %d consultas, %d usos y %d centavos, y sus cargos suman %d, %d y %d",
				o.Done, o.Uses, o.Centavos, o.done, o.uses, o.centavos)
		}
	}
	r.check("%d lotes, %d cargos: cada posición cubierta una vez, al precio de su escalón o con un uso, y con su respuesta", len(list), charges)
	return nil
}

// alone says what is wrong with an order by itself, "" when nothing is.
func (o *order) alone() string {
	last := 0
	for i, s := range o.Prices {
		if s.Centavos <= 0 || s.From <= last || i == 0 && s.From != 1 {
			return "sus escalones no son ninguno o no empiezan en la consulta 1 y suben"
		}
		last = s.From
	}
	switch {
	case !idForm.MatchString(o.ID) || !strings.HasPrefix(o.ID, "LOT-"):
		return "no es el identificador de un lote"
	case o.Done < 0 || o.Done > o.Units || o.Units < 1:
		return fmt.Sprintf("guardó %d de %d consultas", o.Done, o.Units)
	case o.State != "abierto" && o.State != "detenido" && o.State != "terminado":
		return fmt.Sprintf("estado %q", o.State)
	case (o.State == "terminado") != (o.Done == o.Units):
		return fmt.Sprintf("está %s con %d de %d consultas", o.State, o.Done, o.Units)
	}
	return ""
}

// pay takes the next charge of an order and says what is wrong with it.
func (o *running) pay(c *charge) string {
	n := int64(len(c.Records))
	before := o.done
	o.done = c.To
	o.uses += c.Uses
	o.centavos += c.Centavos
	switch {
	case c.From != before+1 || int64(c.To-c.From)+1 != n || n == 0:
		return fmt.Sprintf("cubre las consultas %d a %d con %d respuestas, después de la %d", c.From, c.To, n, before)
	case (c.Movement == nil) != (len(o.Prices) == 0):
		return "un lote con precio se cobra con movimientos, y uno sin precio con ninguno"
	case c.Movement == nil:
		if c.Uses != 0 || c.Centavos != 0 || c.Unit != 0 {
			return "cobra sin movimiento"
		}
		return ""
	case *c.Movement <= o.movement:
		return fmt.Sprintf("el movimiento %d no sigue al %d", *c.Movement, o.movement)
	}
	o.movement = *c.Movement
	if c.Uses != 0 {
		if c.Uses != n || c.Centavos != 0 || c.Unit != 0 {
			return fmt.Sprintf("%d consultas se pagaron con %d usos y %d centavos", n, c.Uses, c.Centavos)
		}
		return ""
	}
	price, last := o.price(c.From)
	if c.Unit != price || c.To > last && last != 0 || c.Centavos != n*price {
		return fmt.Sprintf("las consultas %d a %d costaron %d centavos, %d cada una; desde la %d son %d cada una", c.From, c.To, c.Centavos, c.Unit, c.From, price)
	}
	return ""
}

// price is that of a position, and the last position that costs as much; 0: all that
// follow.
func (o *order) price(position int) (centavos int64, last int) {
	for _, s := range o.Prices {
		if s.From > position {
			return centavos, s.From - 1
		}
		centavos = s.Centavos
	}
	return centavos, 0
}

// eachLine calls fn with each line of a file, counted from 1.
func eachLine(dir fs.FS, name string, r *report, fn func(n int, text []byte)) error {
	l, err := openLines(dir, name)
	if errors.Is(err, fs.ErrNotExist) {
		r.fault("falta %s", name)
		return nil
	} else if err != nil {
		return err
	}
	n := 0
	for text, more := l.next(); more; text, more = l.next() {
		n++
		fn(n, text)
	}
	return l.close()
}
