package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"cotejo/accounts"
	"cotejo/civil"
	"cotejo/products/evidence"
	"cotejo/products/platform"
)

// Accounts, organizations and keys from the command line.

type orgReply struct {
	ID      string `json:"org"`
	Twin    string `json:"org_prueba"` // what its test keys belong to
	Name    string `json:"nombre"`
	Created string `json:"creada"`
}

type accountReply struct {
	ID      string     `json:"cuenta"`
	Name    string     `json:"nombre"`
	Created string     `json:"creada"`
	Orgs    []orgReply `json:"organizaciones"`
	Balance string     `json:"saldo,omitempty"` // of one account
	Keys    []keyReply `json:"llaves,omitempty"`
}

type keyReply struct {
	Key         string   `json:"llave,omitempty"` // only when it is created
	ID          string   `json:"llave_id"`
	Org         string   `json:"org,omitempty"`
	Mode        string   `json:"modo"`
	State       string   `json:"estado"`
	Created     string   `json:"creada"`
	LastUsed    string   `json:"ultimo_uso,omitempty"` // to the hour
	Only        []string `json:"solo,omitempty"`
	Until       string   `json:"vence,omitempty"`
	Successor   string   `json:"sucesora,omitempty"`
	Deactivated string   `json:"desactivada,omitempty"`
}

// accountsArgs are what the commands of this file are asked.
type accountsArgs struct {
	Account  string        `json:"cuenta,omitempty"`
	Name     string        `json:"nombre,omitempty"`
	Entities []string      `json:"entidades,omitempty"`
	Org      string        `json:"org,omitempty"`
	Key      string        `json:"llave_id,omitempty"`
	Mode     string        `json:"modo,omitempty"`
	Only     []string      `json:"solo,omitempty"`
	Grace    time.Duration `json:"gracia,omitempty"`
}

var modeNames = map[accounts.Mode]string{accounts.Live: "live", accounts.Test: "test", accounts.Admin: "admin"}

func newOrgReply(o accounts.Organization) orgReply {
	return orgReply{accounts.FormatOrg(o.ID), accounts.FormatOrg(o.ID.Twin()), o.Name, civil.Timestamp(o.Created)}
}

func newAccountReply(a accounts.Account, orgs []accounts.Organization) accountReply {
	r := accountReply{ID: accounts.FormatAccount(a.ID), Name: a.Name, Created: civil.Timestamp(a.Created), Orgs: []orgReply{}}
	for _, o := range orgs {
		r.Orgs = append(r.Orgs, newOrgReply(o))
	}
	return r
}

func newKeyReply(k accounts.Key) keyReply {
	r := keyReply{
		ID: k.ID, Mode: modeNames[k.Mode], State: "activa", Created: civil.Timestamp(k.Created), Only: k.Only, Successor: k.Successor,
		LastUsed: timestampOr(k.LastUsed, ""), Until: timestampOr(k.Until, ""), Deactivated: timestampOr(k.Deactivated, ""),
	}
	if k.Org != 0 {
		r.Org = accounts.FormatOrg(k.Org)
	}
	switch {
	case !k.Deactivated.IsZero():
		r.State = "desactivada"
	case !k.Active(now()):
		r.State = "vencida"
	case !k.Until.IsZero():
		r.State = "en_gracia"
	}
	return r
}

func newKeyReplies(keys []accounts.Key) []keyReply {
	replies := make([]keyReply, len(keys))
	for i, k := range keys {
		replies[i] = newKeyReply(k)
	}
	return replies
}

func (n *node) createAccount(ctx context.Context, a accountsArgs) (accountReply, error) {
	account, orgs, err := n.accounts.CreateAccount(ctx, accounts.AccountRequest{Name: a.Name, Entities: a.Entities})
	return newAccountReply(account, orgs), err
}

func (n *node) listAccounts(ctx context.Context, _ accountsArgs) ([]accountReply, error) {
	all, err := n.accounts.Accounts(ctx)
	replies := make([]accountReply, len(all))
	for i, account := range all {
		orgs, failed := n.accounts.Organizations(account.ID)
		if failed != nil {
			return nil, failed
		}
		replies[i] = newAccountReply(account, orgs)
	}
	return replies, err
}

func (n *node) showAccount(_ context.Context, a accountsArgs) (r accountReply, err error) {
	id, err := accounts.ParseAccount(a.Account)
	if err != nil {
		return r, err
	}
	account, err := n.accounts.Account(id)
	if err != nil {
		return r, err
	}
	orgs, err := n.accounts.Organizations(id)
	if err != nil {
		return r, err
	}
	r = newAccountReply(account, orgs)
	w, err := n.ledger.Wallet(id, now())
	if err != nil {
		return r, err
	}
	r.Balance = pesos(w.Balance)
	for _, o := range orgs {
		keys, err := n.accounts.Keys(o.ID)
		if err != nil {
			return r, err
		}
		r.Keys = append(r.Keys, newKeyReplies(keys)...)
	}
	return r, nil
}

func (n *node) createOrganization(ctx context.Context, a accountsArgs) (orgReply, error) {
	id, err := accounts.ParseAccount(a.Account)
	if err != nil {
		return orgReply{}, err
	}
	o, err := n.accounts.AddOrganization(ctx, accounts.OrganizationRequest{Account: id, Name: a.Name})
	return newOrgReply(o), err
}

func (n *node) createKey(ctx context.Context, a accountsArgs) (keyReply, error) {
	r := accounts.KeyRequest{Only: a.Only}
	for m, name := range modeNames {
		if name == a.Mode {
			r.Mode = m
		}
	}
	if r.Mode == 0 {
		return keyReply{}, exitWith(exitUsage, "--mode es live, test o admin, no «%s»", a.Mode)
	}
	if a.Org != "" || r.Mode != accounts.Admin {
		var err error
		if r.Org, err = accounts.ParseOrg(a.Org); err != nil {
			return keyReply{}, err
		}
	}
	// The operations of this program: what their parts are wired to does not matter here.
	table, err := n.operations(platform.Config{}, evidence.Config{}, nil)
	if err != nil {
		return keyReply{}, err
	}
	if err := table.CheckOnly(r.Mode, r.Only); err != nil {
		return keyReply{}, err
	}
	secret, key, err := n.accounts.CreateKey(ctx, r)
	return newSecret(secret, key), err
}

// newSecret is the reply of a command that made a key.
func newSecret(secret string, k accounts.Key) keyReply {
	r := newKeyReply(k)
	r.Key = secret
	return r
}

func (n *node) rotateKey(ctx context.Context, a accountsArgs) (keyReply, error) {
	secret, key, err := n.accounts.RotateKey(ctx, a.Key, a.Grace)
	return newSecret(secret, key), err
}

func (n *node) deactivateKey(ctx context.Context, a accountsArgs) (keyReply, error) {
	k, err := n.accounts.DeactivateKey(ctx, a.Key)
	return newKeyReply(k), err
}

func (n *node) showKey(_ context.Context, a accountsArgs) (keyReply, error) {
	k, err := n.accounts.Key(a.Key)
	return newKeyReply(k), err
}

func (n *node) listKeys(_ context.Context, a accountsArgs) ([]keyReply, error) {
	if a.Org == "" {
		keys, err := n.accounts.AdminKeys()
		return newKeyReplies(keys), err
	}
	org, err := accounts.ParseOrg(a.Org)
	if err != nil {
		return nil, err
	}
	keys, err := n.accounts.Keys(org)
	return newKeyReplies(keys), err
}

type accountsCreate struct {
	Name   string   `arg:"" name:"nombre" help:"Razón social de la cuenta y de su primera organización."`
	Entity []string `name:"entity" sep:"none" help:"Razón social de otra organización de la cuenta; se puede repetir." placeholder:"NOMBRE"`
}

func (c *accountsCreate) Run(a *app) error {
	var r accountReply
	if err := a.change("accounts.create", mayBeCreated, accountsArgs{Name: c.Name, Entities: c.Entity}, &r, "accounts list"); err != nil {
		return err
	}
	return a.print(r, func() {
		a.printAccount(r)
		fmt.Fprintf(a.stdout, "siguiente: cotejo keys create --org %s --mode test\n", r.Orgs[0].ID)
	})
}

func (a *app) printAccount(r accountReply) {
	fmt.Fprintf(a.stdout, "cuenta %s  %s  %s\n", r.ID, r.Created, r.Name)
	for _, o := range r.Orgs {
		fmt.Fprintf(a.stdout, "  organización %s  %s  %s\n", o.ID, o.Created, o.Name)
	}
}

type accountsList struct{}

func (c *accountsList) Run(a *app) error {
	var r []accountReply
	if err := a.execute("accounts.list", mustExist, accountsArgs{}, &r); err != nil {
		return err
	}
	return a.print(r, func() {
		if len(r) == 0 {
			fmt.Fprintln(a.stdout, "Aún no hay cuentas. Cree la primera: cotejo accounts create NOMBRE")
		}
		for _, account := range r {
			a.printAccount(account)
		}
	})
}

type accountsShow struct {
	Account string `arg:"" name:"cuenta" help:"Cuenta (cta_…)."`
}

func (c *accountsShow) Run(a *app) error {
	var r accountReply
	if err := a.execute("accounts.show", mustExist, accountsArgs{Account: c.Account}, &r); err != nil {
		return err
	}
	return a.print(r, func() {
		a.printAccount(r)
		fmt.Fprintf(a.stdout, "saldo %s MXN\n", r.Balance)
		for _, k := range r.Keys {
			a.printKey(k)
		}
	})
}

type orgsCreate struct {
	Account string `required:"" help:"Cuenta (cta_…)."`
	Name    string `arg:"" name:"nombre" help:"Razón social."`
}

func (c *orgsCreate) Run(a *app) error {
	var r orgReply
	if err := a.change("orgs.create", mustExist, accountsArgs{Account: c.Account, Name: c.Name}, &r, "accounts show "+c.Account); err != nil {
		return err
	}
	return a.print(r, func() {
		fmt.Fprintf(a.stdout, "organización %s  %s\nsiguiente: cotejo keys create --org %s --mode test\n", r.ID, r.Name, r.ID)
	})
}

type keysCreate struct {
	Org  string   `help:"Organización (org_…); ninguna con --mode admin."`
	Mode string   `required:"" help:"live: fuentes reales, consume saldo. test: datos sintéticos, sin costo. admin: solo las rutas de administración." placeholder:"live|test|admin"`
	Only []string `help:"Limita la llave a estas operaciones, por su operationId en /openapi.json." placeholder:"OPERACION,…"`
}

func (c *keysCreate) Run(a *app) error {
	if c.Org == "" && c.Mode != modeNames[accounts.Admin] {
		return exitWith(exitUsage, "falta --org: de qué organización es la llave")
	}
	return a.makeKey("keys.create", accountsArgs{Org: c.Org, Mode: c.Mode, Only: c.Only}, keysListOf(c.Org))
}

// keysListOf is the command line that lists the keys of an organization, or the
// operator's.
func keysListOf(org string) string {
	if org == "" {
		return "keys list --admin"
	}
	return "keys list --org " + org
}

// makeKey runs a command that makes a key, and shows it.
func (a *app) makeKey(command string, args accountsArgs, check string) error {
	var r keyReply
	if err := a.change(command, mustExist, args, &r, check); err != nil {
		return err
	}
	return a.printSecret(r, r.Key, fmt.Sprintf("la llave %s quedó creada y no se pudo mostrar; desactívela (cotejo keys deactivate %s) y cree otra", r.ID, r.ID))
}

type keysRotate struct {
	ID    string        `arg:"" name:"llave" help:"Identificador de la llave; vea «cotejo keys list»."`
	Grace time.Duration `default:"24h" help:"Cuánto más sirve la anterior: de 0s a 720h." placeholder:"24h"`
}

func (c *keysRotate) Run(a *app) error {
	if c.Grace == 0 {
		fmt.Fprintln(a.stderr, "Sin gracia: la anterior deja de servir en el acto.")
	}
	return a.makeKey("keys.rotate", accountsArgs{Key: c.ID, Grace: c.Grace}, "keys show "+c.ID)
}

type keysDeactivate struct {
	ID string `arg:"" name:"llave" help:"Identificador de la llave; vea «cotejo keys list»."`
}

func (c *keysDeactivate) Run(a *app) error {
	var r keyReply
	if err := a.change("keys.deactivate", mustExist, accountsArgs{Key: c.ID}, &r, "keys show "+c.ID); err != nil {
		return err
	}
	return a.print(r, func() { fmt.Fprintf(a.stdout, "llave %s %s: ninguna petición entra ya con ella\n", r.ID, r.State) })
}

type keysShow struct {
	ID string `arg:"" name:"llave" help:"Identificador de la llave: los 8 caracteres que siguen a su prefijo."`
}

func (c *keysShow) Run(a *app) error {
	var r keyReply
	if err := a.execute("keys.show", mustExist, accountsArgs{Key: c.ID}, &r); err != nil {
		return err
	}
	return a.print(r, func() {
		a.printKey(r)
		fmt.Fprintf(a.stdout, "  organización %s\n", orDash(r.Org))
	})
}

type keysList struct {
	Org   string `help:"Organización (org_…)." xor:"whose" required:""`
	Admin bool   `help:"Las llaves de administración." xor:"whose" required:""`
}

func (c *keysList) Run(a *app) error {
	var r []keyReply
	if err := a.execute("keys.list", mustExist, accountsArgs{Org: c.Org}, &r); err != nil {
		return err
	}
	return a.print(r, func() {
		for _, k := range r {
			a.printKey(k)
		}
	})
}

func (a *app) printKey(k keyReply) {
	fmt.Fprintf(a.stdout, "%s  %-5s  %-11s  creada %s  último uso %s\n", k.ID, k.Mode, k.State, k.Created, orDash(k.LastUsed))
	if len(k.Only) > 0 {
		fmt.Fprintf(a.stdout, "  solo %s\n", strings.Join(k.Only, ", "))
	}
	if k.Until != "" {
		fmt.Fprintf(a.stdout, "  hasta %s; en su lugar %s\n", k.Until, k.Successor)
	}
}
