package catalogs

import (
	"cotejo/canon"
	"cotejo/catalog"
	"cotejo/operation"
)

// What an answer does not mean.
const (
	bankNotice    = "Los nombres son de las listas y fechas que se indican; una clave puede cambiar de titular. No dice que una cuenta exista ni que la institución esté autorizada hoy."
	changedNotice = "La clave cambió de titular o de nombre después de la lista del SAT: catalogo_sat no nombra al participante de hoy. "
	leftNotice    = "La clave no está en la lista de participantes del SPEI de la versión; no se sabe qué día salió. "
	satNotice     = "Que la clave esté vigente no dice que sea la que corresponde a un contribuyente o a una operación."
	genericNotice = "Es también el régimen con el que se emite al RFC genérico, aunque el catálogo lo limite a personas físicas. "
	phoneNotice   = "Es el plan de numeración: no dice si el número es fijo o móvil, de qué operador es, ni si está asignado."
	planNotice    = "Es el plan de numeración: dice a qué proveedor se asignó el rango, no a cuál se portó el número ni quién lo usa."
	// The ranges of these numbers are published apart.
	elsewhereNotice = "El plan de numeración cargado no tiene este número, que no es geográfico: no se sabe si está asignado ni a qué proveedor."
	prefixNotice    = "El prefijo que se retiró no se marca desde agosto de 2019: marque los 10 dígitos. "
	unknownNotice   = "La versión no dice si estaba vigente ese día. "
)

// banks answers by a code of three digits.
func banks(dst []byte, in operation.Input) ([]byte, operation.Computed, error) {
	list := catalog.Of(in.Edition()).Banks
	key, _ := operation.Get[string](in, keyParam)
	day, faults := dayOf(in)
	a, err := list.On(key, day)
	if err = refusal(faults, err, key); err != nil {
		return nil, operation.Computed{}, err
	}
	b := &a.Row
	m := members(dst)
	m.text(keyParam, b.Code)
	m.known("nombre", b.Name())
	m.known("clase", string(b.Class))
	m.open("spei")
	m.flag("participa", b.InSPEI)
	m.known("clave", b.SPEI)
	if b.InSPEI {
		m.known("nombre", b.SPEIName)
	} else {
		m.null("nombre")
	}
	m.day("lista_del", list.Listed())
	m.close()
	if b.SATName == "" && b.SATLegalName == "" {
		m.null("catalogo_sat")
	} else {
		m.open("catalogo_sat")
		m.known("nombre", b.SATName)
		m.known("razon_social", b.SATLegalName)
		m.day("desde", b.SATValidity.From)
		m.day("hasta", b.SATValidity.To)
		m.close()
	}
	m.known("nombre_comun", b.CommonName)
	m.flag("cambio_de_titular_o_nombre", b.Changed)
	m.standing(day, a.Standing)
	notice := bankNotice
	switch {
	case b.Changed:
		notice = changedNotice + notice
	case !b.InSPEI && a.Standing == catalog.Ended && b.SATValidity.To.IsZero():
		notice = leftNotice + notice
	}
	m.source(list.Version())
	m.further(list.List())
	return m.end(unknown(a.Standing, notice), list.Basis())
}

// unknown says first that a standing is not known.
func unknown(s catalog.Standing, notice string) string {
	if s == catalog.Unknown {
		return unknownNotice + notice
	}
	return notice
}

// Values of the parameter tipo.
const (
	typeRegime = "regimen"
	typeUse    = "uso_cfdi"
	typeForm   = "forma_pago"
)

// satKeys answers by a key of one of three catalogues of the SAT.
func satKeys(dst []byte, in operation.Input) ([]byte, operation.Computed, error) {
	set := catalog.Of(in.Edition())
	kind, _ := operation.Get[string](in, "tipo")
	key, _ := operation.Get[string](in, keyParam)
	day, faults := dayOf(in)
	m := members(dst)
	m.text("tipo", kind)
	m.text(keyParam, key)
	switch kind {
	case typeUse:
		a, err := set.Uses.On(key, day)
		if err = refusal(faults, err, key); err != nil {
			return nil, operation.Computed{}, err
		}
		m.text("texto", a.Row.Text)
		m.persons(a.Row.Persons)
		m.name("regimenes_receptor")
		m = append(m, '[')
		for i, regime := range a.Row.Regimes {
			if i > 0 {
				m = append(m, ',')
			}
			m = canon.AppendString(m, regime)
		}
		m = append(m, ']')
		m.standing(day, a.Standing)
		m.validity(a.Row.Validity)
		return m.listed(set.Uses.Version(), satNotice)
	case typeForm:
		a, err := set.PaymentForms.On(key, day)
		if err = refusal(faults, err, key); err != nil {
			return nil, operation.Computed{}, err
		}
		f := &a.Row
		m.text("texto", f.Text)
		m.open("pago")
		m.flag("bancarizado", f.Banked)
		m.flag("requiere_numero_operacion", f.NeedsOperationNumber)
		m.flag("permite_tipo_cadena_pago", f.AllowsPaymentChain)
		m.flag("requiere_nombre_banco_extranjero", f.NeedsForeignBankName)
		m.account("ordenante", f.Payer)
		m.account("beneficiario", f.Beneficiary)
		m.close()
		m.standing(day, a.Standing)
		m.validity(f.Validity)
		return m.listed(set.PaymentForms.Version(), satNotice)
	}
	a, err := set.Regimes.On(key, day)
	if err = refusal(faults, err, key); err != nil {
		return nil, operation.Computed{}, err
	}
	m.text("texto", a.Row.Text)
	m.persons(a.Row.Persons)
	m.standing(day, a.Standing)
	m.validity(a.Row.Validity)
	notice := satNotice
	if key == noObligations {
		notice = genericNotice + notice
	}
	return m.listed(set.Regimes.Version(), notice)
}

// noObligations is the regime of the generic RFC too (Anexo 20).
const noObligations = "616"

func (m *members) persons(p catalog.Persons) {
	m.open("personas")
	m.flag("fisica", p.Fisica)
	m.flag("moral", p.Moral)
	m.close()
}

func (m *members) account(name string, r catalog.AccountRule) {
	m.open(name)
	m.flag("permite_cuenta", r.Allowed)
	m.flag("permite_rfc_banco", r.BankRFC)
	m.known("patron_cuenta", r.Pattern)
	m.close()
}

// phones answers by a national number. The numbering plan has no validity of its
// own, so the day is always today.
func phones(dst []byte, in operation.Input) ([]byte, operation.Computed, error) {
	list := catalog.Of(in.Edition()).Phones
	number, _ := operation.Get[string](in, "numero")
	a, err := list.On(number, in.Today())
	if err != nil {
		return nil, operation.Computed{}, err
	}
	p := &a.Row
	m := members(dst)
	m.text("numero", p.Number)
	m.text("formato", p.Format())
	m.text("internacional", p.International())
	m.text("clave_area", p.Area.Code)
	m.text("numero_local", p.Local)
	m.text("clase", string(p.Area.Class))
	m.known("zona", p.Area.Zone)
	m.known("prefijo_retirado", p.Dialled)
	notice := phoneNotice
	switch {
	case list.Plan() == nil:
		m.null("numeracion")
	case p.Assigned == nil && p.Area.Class != catalog.Geographic:
		m.null("numeracion")
		notice = elsewhereNotice
	default:
		m.assigned(p.Assigned)
		notice = planNotice
	}
	m.standing(a.Day, a.Standing)
	if p.VoidPrefix() {
		notice = prefixNotice + notice
	}
	m.source(list.Version())
	m.further(list.Plan())
	return m.end(unknown(a.Standing, notice), list.Basis())
}

// assigned writes the range of the numbering plan that holds a number, nil when
// none does.
func (m *members) assigned(a *catalog.Assignment) {
	m.open("numeracion")
	m.flag("asignada", a != nil)
	if a == nil {
		a = &catalog.Assignment{}
	}
	m.flag("en_varios_rangos", a.Ambiguous)
	m.known("linea", string(a.Line))
	m.known("modalidad", a.Mode)
	m.known("proveedor", a.Provider)
	m.known("zona", a.Zone)
	m.day("fecha_asignacion", a.Since)
	m.close()
}
