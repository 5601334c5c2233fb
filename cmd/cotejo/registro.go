package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"cotejo/accounts"
	"cotejo/civil"
)

// Registration keys, and codes for those who are not reached by mail.

type registroArgs struct {
	Name    string `json:"nombre,omitempty"`
	Vendor  string `json:"vendedor,omitempty"`
	Max     int    `json:"maximo,omitempty"`
	Expires string `json:"vence,omitempty"` // AAAA-MM-DD, included
	ID      string `json:"id,omitempty"`    // of a key or of a registration
}

type registrarReply struct {
	Key     string `json:"llave,omitempty"` // only when it is created
	ID      string `json:"llave_id"`
	Name    string `json:"nombre"`
	Vendor  string `json:"vendedor,omitempty"`
	Max     int    `json:"maximo,omitempty"`
	Made    int    `json:"cuentas"`
	Pending int    `json:"pendientes"`
	Expires string `json:"vence,omitempty"`
	Created string `json:"creada"`
	Active  bool   `json:"activa"`
}

func newRegistrarReply(secret string, k accounts.RegistrationKey) registrarReply {
	return registrarReply{secret, k.ID, k.Name, k.Vendor, k.Max, k.Made, k.Pending, timestampOr(k.Expires, ""), civil.Timestamp(k.Created), k.Active}
}

type registrationReply struct {
	Code       string `json:"codigo,omitempty"` // only when it is issued
	ID         string `json:"registro_id"`
	Email      string `json:"email"`
	RFC        string `json:"rfc_fiscal"`
	Name       string `json:"razon_social"`
	Key        string `json:"llave_id"`
	Issued     string `json:"emitido"`
	Expires    string `json:"vence"`
	Left       int    `json:"intentos"`
	ByOperator bool   `json:"por_operador"`
}

func newRegistrationReply(r *accounts.Registration) registrationReply {
	return registrationReply{ID: r.ID.String(), Email: r.Fiscal.Email, RFC: r.Fiscal.RFC, Name: r.Fiscal.LegalName, Key: r.Key,
		Issued: civil.Timestamp(r.Issued), Expires: civil.Timestamp(r.Expires), Left: r.Left, ByOperator: r.ByOperator}
}

func (n *node) createRegistrar(ctx context.Context, a registroArgs) (registrarReply, error) {
	var expires time.Time
	if a.Expires != "" {
		day, err := civil.Parse(a.Expires)
		if err != nil {
			return registrarReply{}, exitWith(exitUsage, "--expires es un día AAAA-MM-DD, no «%s»", a.Expires)
		}
		expires = day.End()
	}
	secret, key, err := n.accounts.CreateRegistrationKey(ctx, accounts.RegistrationKeySpec{Name: a.Name, Vendor: a.Vendor, Max: a.Max, Expires: expires})
	return newRegistrarReply(secret, key), err
}

func (n *node) listRegistrars(context.Context, registroArgs) ([]registrarReply, error) {
	keys, err := n.accounts.RegistrationKeys()
	replies := make([]registrarReply, len(keys))
	for i, k := range keys {
		replies[i] = newRegistrarReply("", k)
	}
	return replies, err
}

func (n *node) deactivateRegistrar(ctx context.Context, a registroArgs) (registrarReply, error) {
	key, err := n.accounts.DeactivateRegistrationKey(ctx, a.ID)
	return newRegistrarReply("", key), err
}

func (n *node) listRegistrations(context.Context, registroArgs) ([]registrationReply, error) {
	waiting, err := n.accounts.Registrations(now())
	replies := make([]registrationReply, len(waiting))
	for i := range waiting {
		replies[i] = newRegistrationReply(&waiting[i])
	}
	return replies, err
}

// issueCode leaves a trace in the log, and in the registration that it was issued by
// hand.
func (n *node) issueCode(ctx context.Context, a registroArgs) (registrationReply, error) {
	id, err := accounts.ParseRegistration(a.ID)
	if err != nil {
		return registrationReply{}, err
	}
	issued, err := n.accounts.IssueCode(ctx, id)
	if err != nil {
		return registrationReply{}, err
	}
	slog.Info("registro: el operador emitió un código", "registro", id.String())
	r := newRegistrationReply(&issued.Registration)
	r.Code = accounts.FormatCode(issued.Code)
	return r, nil
}

type registroCreate struct {
	Name    string `required:"" help:"Para quién es: queda en la lista."`
	Vendor  string `help:"Código de quien vende; queda con cada cuenta que se haga con la llave." placeholder:"CÓDIGO"`
	Max     int    `help:"Cuántas cuentas puede hacer; 0: sin límite." default:"0"`
	Expires string `help:"Último día en que sirve, AAAA-MM-DD." placeholder:"DÍA"`
}

func (c *registroCreate) Run(a *app) error {
	var r registrarReply
	args := registroArgs{Name: c.Name, Vendor: c.Vendor, Max: c.Max, Expires: c.Expires}
	if err := a.change("registro.create", mustExist, args, &r, "registro list"); err != nil {
		return err
	}
	return a.printSecret(r, r.Key, "la llave de registro "+r.ID+" quedó creada y no se pudo mostrar; desactívela y cree otra")
}

// printSecret prints what cannot be shown again; lost is what to do when nobody saw
// it.
func (a *app) printSecret(v any, secret, lost string) error {
	var written error
	err := a.print(v, func() {
		if _, written = fmt.Fprintf(a.stdout, "%s\n", secret); written == nil {
			fmt.Fprintln(a.stderr, "Guárdela ahora: no se conserva y no se puede mostrar otra vez.")
		}
	})
	if err = errors.Join(err, written); err != nil {
		return exitWith(exitIO, "%s: %w", lost, err)
	}
	return nil
}

type registroList struct{}

func (c *registroList) Run(a *app) error {
	var r []registrarReply
	if err := a.execute("registro.list", mustExist, registroArgs{}, &r); err != nil {
		return err
	}
	return a.print(r, func() {
		if len(r) == 0 {
			fmt.Fprintln(a.stdout, "Aún no hay llaves de registro: nadie puede registrarse solo. Cree una: cotejo registro create --name NOMBRE")
		}
		for _, k := range r {
			state := "activa"
			if !k.Active {
				state = "inactiva"
			}
			limit := "sin límite"
			if k.Max > 0 {
				limit = fmt.Sprintf("de %d", k.Max)
			}
			fmt.Fprintf(a.stdout, "%s  %-8s  cuentas %d %s  pendientes %d  vence %s  vendedor %s  %s\n",
				k.ID, state, k.Made, limit, k.Pending, orDash(k.Expires), orDash(k.Vendor), k.Name)
		}
	})
}

type registroDeactivate struct {
	ID string `arg:"" name:"llave_id" help:"Los 8 caracteres que siguen a svc_reg_; vea «cotejo registro list»."`
}

func (c *registroDeactivate) Run(a *app) error {
	var r registrarReply
	if err := a.change("registro.deactivate", mustExist, registroArgs{ID: c.ID}, &r, "registro list"); err != nil {
		return err
	}
	return a.print(r, func() {
		fmt.Fprintf(a.stdout, "%s inactiva: ya nadie se registra ni confirma con ella; las cuentas hechas siguen\n", r.ID)
	})
}

type registroPending struct{}

func (c *registroPending) Run(a *app) error {
	var r []registrationReply
	if err := a.execute("registro.pending", mustExist, registroArgs{}, &r); err != nil {
		return err
	}
	return a.print(r, func() {
		for _, p := range r {
			fmt.Fprintf(a.stdout, "%s  %s  %s  vence %s  quedan %d intentos  llave %s  %s\n", p.ID, p.Email, p.RFC, p.Expires, p.Left, p.Key, p.Name)
		}
	})
}

type registroCode struct {
	ID string `arg:"" name:"registro_id" help:"reg_…; vea «cotejo registro pending»."`
}

func (c *registroCode) Run(a *app) error {
	var r registrationReply
	if err := a.change("registro.code", mustExist, registroArgs{ID: c.ID}, &r, "registro pending"); err != nil {
		return err
	}
	if !a.json {
		fmt.Fprintf(a.stderr, "Déselo solo a quien lee %s: quien lo muestre será dueño de la cuenta. Vence %s; el código anterior ya no sirve.\n", r.Email, r.Expires)
	}
	return a.printSecret(r, r.Code, "el código de "+r.ID+" quedó emitido y no se pudo mostrar; emita otro")
}
