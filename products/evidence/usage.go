package evidence

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"cotejo/accounts"
	"cotejo/checks"
	"cotejo/civil"
	"cotejo/ledger"
	"cotejo/operation"
)

// totals are what a service was used for.
type totals struct {
	Service string `json:"servicio,omitempty"`
	Answers int64  `json:"consultas"`
	Charged int64  `json:"cobradas"`
	Amount  string `json:"monto"`
	Uses    int64  `json:"usos_individuales"`

	centavos int64
}

func (t *totals) add(answers, charged, centavos, uses int64) {
	t.Answers += answers
	t.Charged += charged
	t.centavos += centavos
	t.Uses += uses
	t.Amount = operation.Pesos(t.centavos)
}

// byService sums by service, in the order of their codes.
type byService struct {
	all   totals
	parts []totals
}

func (b *byService) add(service string, answers, charged, centavos, uses int64) {
	i, found := slices.BinarySearchFunc(b.parts, service, func(t totals, s string) int { return cmp.Compare(t.Service, s) })
	if !found {
		b.parts = slices.Insert(b.parts, i, totals{Service: service})
	}
	b.parts[i].add(answers, charged, centavos, uses)
	b.all.add(answers, charged, centavos, uses)
}

type usageAnswer struct {
	From     civil.Date `json:"desde"`
	To       civil.Date `json:"hasta"`
	Services []totals   `json:"servicios"`
	Total    totals     `json:"total"`
	Balance  string     `json:"saldo"`
	Uses     []usesLeft `json:"usos"`
	*detail
	Sandbox bool `json:"sandbox,omitempty"`
}

// detail is a page of the answers, one by one.
type detail struct {
	Lines []usageLine `json:"detalle"`
	Next  *string     `json:"siguiente"`
}

// usesLeft are the individual uses of a service that can be spent.
type usesLeft struct {
	Service string `json:"servicio"`
	Left    int64  `json:"disponibles"`
	Expires string `json:"primer_vencimiento"`
}

// usageLine is one answer.
type usageLine struct {
	ID         *string `json:"verification_id"`
	Moment     string  `json:"momento"`
	Service    string  `json:"servicio"`
	Code       *string `json:"result_code"`
	Amount     string  `json:"monto"`
	Single     bool    `json:"uso_individual"`
	Movement   *uint64 `json:"movimiento"`
	Constancia *string `json:"constancia"`
}

// usage answers /v1/uso: totals from the rows that are kept by day and service, the
// detail from records and movements, all of one moment.
func (c Config) usage(_ context.Context, call operation.Call) (operation.Response, error) {
	now := c.Now()
	p, err := period(call.Input, now)
	if err != nil {
		return operation.Response{}, err
	}
	after, _ := operation.Get[cursor](call.Input, "cursor")
	if after.id != "" {
		id, ok := c.Pipeline.Ledger.ParseID(after.id)
		if !ok {
			return operation.Response{}, &operation.InvalidError{Items: []operation.Item{{
				Loc: []any{string(operation.InQuery), "cursor"}, Type: "value_error", Msg: cursorRule, Input: after.id,
			}}}
		}
		after.record = id
	}
	who := call.Principal
	test := who.Mode != accounts.Live
	view, err := c.Pipeline.Ledger.View(who.Account)
	if err != nil {
		return operation.Response{}, err
	}
	defer view.Close()
	a := usageAnswer{From: p.from, To: p.to, Services: []totals{}, Uses: []usesLeft{}, Sandbox: test}
	var sums byService
	sums.all.add(0, 0, 0, 0)
	err = view.Usage(who.Org, test, p.from.Compact(), p.to.Compact(), func(u ledger.Usage) error {
		sums.add(u.Service, u.Answers, u.Charged, u.Centavos, u.Uses)
		return nil
	})
	if err != nil {
		return operation.Response{}, err
	}
	a.Total = sums.all
	a.Services = append(a.Services, sums.parts...)
	wallet, err := view.Wallet(now)
	if err != nil {
		return operation.Response{}, err
	}
	a.Balance = operation.Pesos(wallet.Balance)
	for i := range wallet.Lots { // by expiry
		lot := &wallet.Lots[i]
		if lot.Service == "" {
			continue
		}
		at := slices.IndexFunc(a.Uses, func(u usesLeft) bool { return u.Service == lot.Service })
		if at < 0 {
			at = len(a.Uses)
			a.Uses = append(a.Uses, usesLeft{Service: lot.Service, Expires: civil.Timestamp(lot.Expires)})
		}
		a.Uses[at].Left += lot.Left
	}
	slices.SortFunc(a.Uses, func(x, y usesLeft) int { return cmp.Compare(x.Service, y.Service) })
	if asked, _ := operation.Get[bool](call.Input, "detalle"); asked {
		limit, _ := operation.Get[int](call.Input, "limite")
		d := detailing{view: view, org: who.Org, test: test, span: p, limit: limit, detail: detail{Lines: []usageLine{}}}
		if err := d.page(after); err != nil {
			return operation.Response{}, err
		}
		a.detail = &d.detail
	}
	return answerJSON(a)
}

// cursor is where a page begins: behind a record, or behind a movement.
type cursor struct {
	id       string
	record   ledger.VerificationID // of id
	movement uint64
	uses     bool // behind movement; all records are shown
}

const (
	cursorRule = "«cursor» no es de esta lista; envíe el «siguiente» de la página anterior, o quítelo para empezar de nuevo"
	// behindMovement begins a cursor that stands behind a movement.
	behindMovement = "mov-"
	idLength       = len("COM-20261120-1a2b3c4d")
)

func parseCursor(text string) (any, error) {
	problem := &checks.Problem{Type: "value_error", Rule: cursorRule}
	if digits, ok := strings.CutPrefix(text, behindMovement); ok {
		n, err := strconv.ParseUint(digits, 10, 63)
		if err != nil {
			return nil, problem
		}
		return cursor{movement: n, uses: true}, nil
	}
	if len(text) != idLength {
		return nil, problem
	}
	return cursor{id: text}, nil
}

// detailing makes one page of the detail.
type detailing struct {
	view  *ledger.View
	org   ledger.OrgID
	test  bool
	span  span
	limit int
	detail
}

// maxLooked bounds the movements that one page looks through: those of the whole
// account, of which few may be of this organization and without a record.
const maxLooked = 100_000

var errPage = errors.New("the page is full")

func (d *detailing) page(after cursor) error {
	from, to := d.span.from.Compact(), d.span.to.Compact()
	if !after.uses {
		id := after.record
		if id.Day < from {
			id = ledger.VerificationID{Day: from}
		}
		err := d.view.RecordsAfter(d.org, d.test, id, to, d.record)
		if errors.Is(err, errPage) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	if d.test {
		return nil // never charged, so there are no movements
	}
	before, last, err := d.view.Span(from, to)
	if err != nil {
		return err
	}
	page := ledger.Page{After: max(before, after.movement), Before: last + 1, Limit: maxLooked}
	looked, number := 0, page.After
	err = d.view.Movements(page, func(m *ledger.Movement) error {
		if m.Org == d.org && m.Kind == ledger.KindUse {
			if len(d.Lines) == d.limit {
				return d.more(behindMovement + strconv.FormatUint(number, 10))
			}
			d.Lines = append(d.Lines, usageLine{
				Moment: civil.Timestamp(m.Moment), Service: m.Service, Amount: operation.Pesos(-m.Centavos), Single: m.Uses != 0, Movement: ptr(m.Number),
			})
		}
		looked, number = looked+1, m.Number
		return nil
	})
	if err == nil && looked == maxLooked && number < last {
		err = d.more(behindMovement + strconv.FormatUint(number, 10))
	}
	if errors.Is(err, errPage) {
		err = nil
	}
	return err
}

// more ends the page: the next one begins behind cursor.
func (d *detailing) more(cursor string) error {
	d.Next = &cursor
	return errPage
}

func (d *detailing) record(r ledger.Record) error {
	if len(d.Lines) == d.limit {
		return d.more(*d.Lines[d.limit-1].ID)
	}
	moment, err := operation.ActaMoment(r.Acta)
	if err != nil {
		return err
	}
	line := usageLine{
		ID: ptr(r.ID.String()), Moment: moment, Service: r.Service, Code: ptr(r.Code), Amount: operation.Pesos(r.Centavos),
	}
	if r.Movement != 0 {
		line.Movement, line.Single = ptr(r.Movement), r.Centavos == 0
	}
	d.Lines = append(d.Lines, line)
	return nil
}
