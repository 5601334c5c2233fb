package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"

	"cotejo/accounts"
	"cotejo/admin"
	"cotejo/civil"
	"cotejo/ledger"
	"cotejo/operation"
)

// The commands that read or change account data. Each runs in the server that
// owns the data directory or, when none does, in this process: the same handler
// either way.

type lotReply struct {
	Number  uint64 `json:"lote"` // of the movement that brought it
	Left    string `json:"saldo"`
	Expires string `json:"vence"`
}

type usesReply struct {
	Number  uint64 `json:"lote"`
	Service string `json:"servicio"`
	Left    int64  `json:"usos"`
	Expires string `json:"vence"`
}

type walletReply struct {
	Org     string      `json:"org"`
	Balance string      `json:"saldo"`
	Lots    []lotReply  `json:"lotes"`
	Uses    []usesReply `json:"usos_individuales"`
	Holds   []holdReply `json:"retenciones"`
}

type holdReply struct {
	Number  uint64 `json:"retencion"` // of its movement
	Service string `json:"servicio"`
	Uses    int64  `json:"usos"`
	Held    string `json:"saldo"`
	Until   string `json:"hasta"`
}

type creditReply struct {
	Org      string `json:"org"`
	Movement uint64 `json:"movimiento"`
	Credited string `json:"abonado"`
	Balance  string `json:"saldo"`
	Service  string `json:"servicio,omitempty"` // of uses
	Uses     int64  `json:"usos,omitempty"`     // that were credited
	Left     int64  `json:"quedan,omitempty"`   // of the service
}

// statusReply is what a server says of itself.
type statusReply struct {
	PID   int    `json:"pid"`
	Since string `json:"desde"`
}

type walletArgs struct {
	Org string `json:"org,omitempty"`
	MXN int64  `json:"centavos,omitempty"`
	Why string `json:"motivo,omitempty"`

	Service string `json:"servicio,omitempty"` // with Uses in the place of MXN
	Uses    int64  `json:"usos,omitempty"`
}

// handler is a command that reads its arguments.
func handler[A, R any](f func(context.Context, A) (R, error)) admin.Handler {
	return func(ctx context.Context, raw json.RawMessage, _ func(string)) (any, error) {
		var a A
		if err := json.Unmarshal(raw, &a); err != nil {
			return nil, err
		}
		return f(ctx, a)
	}
}

// commands are the handlers over an open node.
func (n *node) commands() admin.Commands {
	return admin.Commands{
		"accounts.create": handler(n.createAccount),
		"accounts.list":   handler(n.listAccounts),
		"accounts.show":   handler(n.showAccount),
		"orgs.create":     handler(n.createOrganization),
		"keys.create":     handler(n.createKey),
		"keys.rotate":     handler(n.rotateKey),
		"keys.deactivate": handler(n.deactivateKey),
		"keys.list":       handler(n.listKeys),
		"keys.show":       handler(n.showKey),
		"wallet.credit":   handler(n.creditWallet),
		"wallet.show": handler(func(_ context.Context, a walletArgs) (any, error) {
			org, err := accounts.ParseOrg(a.Org)
			if err != nil {
				return nil, err
			}
			return n.wallet(org)
		}),
		"registro.create":     handler(n.createRegistrar),
		"registro.list":       handler(n.listRegistrars),
		"registro.deactivate": handler(n.deactivateRegistrar),
		"registro.pending":    handler(n.listRegistrations),
		"registro.code":       handler(n.issueCode),

		"verify":    n.verify,
		"backup":    n.backup,
		"export":    n.export,
		"jobs.list": n.listJobs,
		"jobs.run":  n.runJob,
		"status": handler(func(context.Context, walletArgs) (any, error) {
			return statusReply{os.Getpid(), civil.Timestamp(n.opened)}, nil
		}),
	}
}

// creditWallet answers what the credit itself brought: nothing that is read
// after it may turn a committed credit into an error.
func (n *node) creditWallet(ctx context.Context, a walletArgs) (any, error) {
	org, err := accounts.ParseOrg(a.Org)
	if err != nil {
		return nil, err
	}
	var c ledger.Charged
	if a.Service != "" {
		price, ok := operation.PriceOf(a.Service)
		if !ok {
			return nil, exitWith(exitUsage, "--uses: «%s» no es un servicio con precio: %s", a.Service, pricedServices())
		}
		c, err = n.accounts.CreditUses(ctx, org, a.Service, a.Uses, price.Single, a.Why)
	} else {
		c, err = n.accounts.Credit(ctx, org, a.MXN, a.Why)
	}
	if err != nil {
		return nil, err
	}
	return creditReply{
		Org: a.Org, Movement: c.Movement, Credited: pesos(c.Centavos), Balance: pesos(c.Balance),
		Service: a.Service, Uses: c.Uses, Left: c.UsesLeft,
	}, nil
}

func pricedServices() string {
	var codes []string
	for _, p := range operation.Prices {
		codes = append(codes, p.Service)
	}
	return strings.Join(codes, ", ")
}

func (n *node) wallet(org ledger.OrgID) (walletReply, error) {
	o, err := n.accounts.Organization(org)
	if err != nil {
		return walletReply{}, err
	}
	w, err := n.ledger.Wallet(o.Account, now())
	reply := walletReply{Org: accounts.FormatOrg(org), Balance: pesos(w.Balance), Lots: []lotReply{}, Uses: []usesReply{}, Holds: []holdReply{}}
	for _, l := range w.Lots {
		if l.Service == "" {
			reply.Lots = append(reply.Lots, lotReply{l.Number, pesos(l.Left), civil.Timestamp(l.Expires)})
		} else {
			reply.Uses = append(reply.Uses, usesReply{l.Number, l.Service, l.Left, civil.Timestamp(l.Expires)})
		}
	}
	for _, h := range w.Holds {
		reply.Holds = append(reply.Holds, holdReply{h.Number, h.Service, h.Uses, pesos(h.Centavos), civil.Timestamp(h.Until)})
	}
	return reply, err
}

// looks are the commands that change no account: they run also where another node
// has the turn.
var looks = map[string]bool{
	"accounts.list": true, "accounts.show": true, "keys.list": true, "keys.show": true, "wallet.show": true,
	"verify": true, "jobs.list": true, "jobs.run": true, "backup": true, "export": true,
}

// execute runs a command where the data directory is owned. What fails once the
// result is there is kept for later: the result must be printed first.
func (a *app) execute(command string, create access, args, result any) error {
	return a.executeTelling(command, create, args, result, func(line string) { fmt.Fprintln(a.stderr, line) })
}

// executeTelling is execute for a command whose progress is not for a person to
// read as it comes.
func (a *app) executeTelling(command string, create access, args, result any, progress func(string)) error {
	dir, err := a.openData(create)
	if err != nil {
		return err
	}
	err = admin.Call(a.ctx, dir.path, command, args, result, progress)
	if !errors.Is(err, admin.ErrNoServer) {
		return err
	}
	open := openNode
	if looks[command] {
		open = openWaiting
	}
	n, err := open(a.ctx, a.config, create)
	if err != nil {
		return err
	}
	if err := n.commands().Run(a.ctx, command, args, result, progress); err != nil {
		return errors.Join(err, n.close())
	}
	a.late = n.close()
	return nil
}

// change is execute for a command that changes something. When its answer was
// lost it says how to find out what became of it: check is a command line.
func (a *app) change(command string, create access, args, result any, check string) error {
	err := a.execute(command, create, args, result)
	if errors.Is(err, admin.ErrLost) {
		return fmt.Errorf("resultado desconocido: revise con «cotejo %s --data %s» antes de repetir: %w", check, a.config.get("data"), err)
	}
	return err
}

type walletCredit struct {
	Org    string `required:"" help:"Organización (org_…)."`
	MXN    string `name:"mxn" help:"Pesos de saldo de paquete, con hasta dos decimales." placeholder:"500.00"`
	Uses   string `help:"En lugar de pesos: usos individuales de un servicio. El movimiento guarda su precio individual vigente." placeholder:"COMPANY:10"`
	Reason string `required:"" help:"Motivo, queda en el movimiento."`
}

func (c *walletCredit) Run(a *app) error {
	args := walletArgs{Org: c.Org, Why: c.Reason}
	var err error
	switch {
	case (c.MXN == "") == (c.Uses == ""):
		return exitWith(exitUsage, "diga qué se abona: --mxn 500.00 o --uses COMPANY:10")
	case c.MXN != "":
		args.MXN, err = parsePesos(c.MXN)
	default:
		args.Service, args.Uses, err = parseUses(c.Uses)
	}
	if err != nil {
		return &exitError{exitUsage, err}
	}
	var r creditReply
	if err := a.change("wallet.credit", mustExist, args, &r, "wallet show --org "+c.Org); err != nil {
		return err
	}
	return a.print(r, func() {
		if r.Service != "" {
			fmt.Fprintf(a.stdout, "abonados %d usos de %s; quedan %d\n", r.Uses, r.Service, r.Left)
			return
		}
		fmt.Fprintf(a.stdout, "abonados %s MXN; saldo %s MXN\n", r.Credited, r.Balance)
	})
}

// parseUses reads SERVICE:COUNT.
func parseUses(s string) (service string, count int64, err error) {
	service, digits, _ := strings.Cut(s, ":")
	count, err = strconv.ParseInt(digits, 10, 64)
	if err != nil || service == "" || count <= 0 || digits[0] == '+' {
		return "", 0, fmt.Errorf("--uses «%s»: se espera SERVICIO:CANTIDAD, como COMPANY:10", s)
	}
	return service, count, nil
}

type walletShow struct {
	Org string `required:"" help:"Organización (org_…)."`
}

func (c *walletShow) Run(a *app) error {
	var r walletReply
	if err := a.execute("wallet.show", mustExist, walletArgs{Org: c.Org}, &r); err != nil {
		return err
	}
	return a.print(r, func() {
		fmt.Fprintf(a.stdout, "saldo %s MXN\n", r.Balance)
		for _, l := range r.Lots {
			fmt.Fprintf(a.stdout, "  lote %d  %s MXN  vence %s\n", l.Number, l.Left, l.Expires)
		}
		for _, u := range r.Uses {
			fmt.Fprintf(a.stdout, "  lote %d  %d usos de %s  vence %s\n", u.Number, u.Left, u.Service, u.Expires)
		}
		for _, h := range r.Holds {
			fmt.Fprintf(a.stdout, "  retención %d  %s  %s MXN y %d usos  hasta %s\n", h.Number, h.Service, h.Held, h.Uses, h.Until)
		}
	})
}

// pesos formats centavos with two decimals.
func pesos(centavos int64) string {
	sign := ""
	if centavos < 0 {
		sign, centavos = "-", -centavos
	}
	return fmt.Sprintf("%s%d.%02d", sign, centavos/100, centavos%100)
}

// parsePesos reads an amount above zero with at most two decimals, exactly.
func parsePesos(s string) (int64, error) {
	bad := fmt.Errorf("--mxn «%s»: se espera una cantidad en pesos mayor que cero, como 500 o 500.00", s)
	whole, cents, _ := strings.Cut(s, ".")
	if len(cents) > 2 || strings.ContainsAny(s, "+-eE_ ") || strings.HasSuffix(s, ".") {
		return 0, bad
	}
	cents += strings.Repeat("0", 2-len(cents))
	n, err := strconv.ParseInt(whole+cents, 10, 64)
	if err != nil || n <= 0 || n > math.MaxInt64/1000 {
		return 0, bad
	}
	return n, nil
}
