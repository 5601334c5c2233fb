package checks

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"cotejo/safexml"
)

// FEL is an electronic tax document of Guatemala (DTE) as its XML states it; a
// text is "" where the document does not state it. The zero FEL is no document.
// Signatures are counted and not verified, and the amounts are not added up:
// that a document passes does not mean that the authority has it.
type FEL struct {
	Encoding  string // of the XML: UTF-8, ISO-8859-1 or windows-1252
	Version   string // of the schema, such as 0.1
	Type      string // FACT, NCRE, NDEB …
	Issued    string // date and time, with or without offset, as written
	Currency  string // GTQ
	Issuer    FELParty
	Branch    string // number of the issuer's establishment
	Trade     string // name of that establishment
	Receiver  FELParty
	Items     int
	Total     string // GranTotal, in decimals as written
	Certifier FELParty
	Certified string // date and time, as Issued
	// Authorization is zero when its text, Serie and Numero cannot be read.
	Authorization Autorizacion
	Signatures    int

	uuid, serie, numero string
	changes             Changes
	structure           *Fault // the first that was met
	rules               [4]*Fault
}

// FELParty is who issues, receives or certifies a document.
type FELParty struct {
	// ID is as written, and in normal form where it is a NIT that can be read.
	ID, Name string
	Kind     string // one of the constants below, "" when the ID is none
	// Digit compares the check digit of a NIT; it is zero for other kinds.
	Digit Comparison
}

// Kinds of FELParty.
const (
	PartyNIT      = "NIT"
	PartyConsumer = "CF"   // consumidor final
	PartyCUI      = "CUI"  // identity number of a person: 13 digits
	PartyForeign  = "EXT"  // id of another country, which has no rule here
	PartyOther    = "OTRO" // a TipoEspecial that is not known here, and so without rule
)

const (
	spaceFEL       = "http://www.sat.gob.gt/dte/fel/0.2.0"
	spaceSignature = "http://www.w3.org/2000/09/xmldsig#"

	digitsCUI = 13
)

// felLimits admit an invoice of several thousand lines with its signatures.
var felLimits = safexml.Limits{Bytes: 2 << 20, Depth: 32, Elements: 100_000, Attributes: 64, Text: 256 << 10}

// ReadFEL reads the XML of a document, which may be wrapped in elements of
// whoever delivered it: it is found by its namespace. The error is a *Problem when
// doc is no XML that can be read, or holds no document or two. What a document
// lacks, repeats or contradicts is a Fault.
func ReadFEL(doc []byte) (FEL, Changes, error) {
	r, err := safexml.New(doc, felLimits)
	if err != nil {
		return FEL{}, 0, felProblem(err)
	}
	f := felReader{Reader: r}
	f.fel.Encoding = r.Encoding()
	root, err := r.Next()
	if err == nil {
		err = f.find(root)
	}
	if err == nil {
		_, err = r.Next() // what comes after the root is read too: io.EOF
	}
	var refused *safexml.Error
	if errors.As(err, &refused) {
		return FEL{}, 0, felProblem(err)
	}
	switch f.documents {
	case 0:
		return FEL{}, 0, &Problem{valueError, "El XML no es un documento FEL: no tiene el elemento GTDocumento del espacio de nombres " +
			spaceFEL + "; envíe el XML certificado."}
	case 1:
	default:
		return FEL{}, 0, &Problem{valueError, "El XML tiene más de un GTDocumento; envíe un documento a la vez."}
	}
	f.fel.judge()
	return f.fel, f.fel.changes, nil
}

func felProblem(err error) *Problem {
	kind := valueError
	var refused *safexml.Error
	if errors.As(err, &refused) && refused.Limit {
		kind = stringTooLong
	}
	return &Problem{kind, "El documento no se puede leer: " + err.Error()}
}

// String returns the UUID of the authorization, "" where it cannot be read.
func (f FEL) String() string { return f.Authorization.String() }

// Test reports whether the document is of a certifier's test environment.
func (f FEL) Test() bool { return f.Authorization.Test() }

// Fault returns the first rule that the document breaks, nil for none: its
// structure, its dates, the NIT of the issuer, that of the receiver, and the
// authorization, in this order.
func (f FEL) Fault() *Fault {
	if f.structure != nil {
		return f.structure
	}
	for _, fault := range f.rules {
		if fault != nil {
			return fault
		}
	}
	return nil
}

// judge completes what is read from more than one place.
func (f *FEL) judge() {
	f.rules[0] = cmp.Or(felMoment("FechaHoraEmision", f.Issued), felMoment("FechaHoraCertificacion", f.Certified))
	f.rules[1] = f.Issuer.nit("NITEmisor", FaultIssuer, "El NIT del emisor", &f.changes)
	if f.Receiver.Kind == "" && f.Receiver.ID != "" {
		f.Receiver.Kind = receiverKind(f.Receiver.ID)
	}
	switch f.Receiver.Kind {
	case PartyNIT:
		f.rules[2] = f.Receiver.nit("IDReceptor", FaultReceiver, "El NIT del receptor", &f.changes)
	case PartyCUI:
		if id := f.Receiver.ID; len(id) != digitsCUI || !allDigits(id) {
			f.rules[2] = &Fault{FaultReceiver, fmt.Sprintf("IDReceptor: «%s» no es un CUI, que lleva 13 dígitos; revise TipoEspecial y el número.", quote(id))}
		}
	}
	// The certifier's is decoded, and decides nothing: those of test environments
	// are made up.
	_ = f.Certifier.nit("", "", "", &f.changes)
	if f.uuid == "" {
		return // the structure says so
	}
	authorization, changes, err := ReadAutorizacion(f.uuid, f.serie, f.numero)
	if err != nil {
		f.rules[3] = &Fault{FaultAuthorization, "NumeroAutorizacion: " + err.Error() + " Pida el XML certificado al emisor."}
		return
	}
	f.Authorization, f.rules[3] = authorization, authorization.Fault()
	f.changes |= changes
}

// receiverKind tells an id without TipoEspecial by its form.
func receiverKind(id string) string {
	switch {
	case strings.EqualFold(id, PartyConsumer):
		return PartyConsumer
	case len(id) == digitsCUI && allDigits(id):
		return PartyCUI
	}
	return PartyNIT
}

// nit reads the ID as a NIT and returns the fault of it, if it has one.
func (p *FELParty) nit(place, code, name string, changes *Changes) *Fault {
	if p.ID == "" {
		return nil // the structure says so
	}
	nit, done, err := ReadNIT(p.ID)
	if err != nil {
		return &Fault{code, place + ": " + err.Error()}
	}
	*changes |= done
	p.ID, p.Kind, p.Digit = nit.String(), PartyNIT, nit.CheckDigit()
	if fault := p.Digit.fault(name); fault != nil {
		return &Fault{code, fault.Rule}
	}
	return nil
}

// felMoment says what is wrong with a date and time, which may have an offset.
func felMoment(place, text string) *Fault {
	if text == "" {
		return nil // the structure says so
	}
	const local = "2006-01-02T15:04:05"
	for _, layout := range [...]string{local, time.RFC3339} {
		if _, err := time.Parse(layout, text); err == nil && len(text) >= len(local) { // an hour of one digit is none
			return nil
		}
	}
	return &Fault{FaultDate, fmt.Sprintf(
		"%s: «%s» no es una fecha y hora que exista, como 2026-03-02T10:15:00-06:00; pida el XML certificado al emisor.", place, quote(text))}
}

// felReader goes through a document. It notes the first thing that is missing,
// repeated or empty, and reads on.
type felReader struct {
	*safexml.Reader
	fel       FEL
	documents int
}

// missing notes a fault of the structure.
func (f *felReader) missing(format string, args ...any) {
	if f.fel.structure == nil {
		f.fel.structure = &Fault{FaultStructure, fmt.Sprintf(format, args...) + " Pida el XML certificado al emisor."}
	}
}

// find looks for the document from an element on.
func (f *felReader) find(e safexml.Event) error {
	if !e.Is(spaceFEL, "GTDocumento") {
		return f.Children(f.find)
	}
	if f.documents++; f.documents > 1 {
		return f.Skip()
	}
	f.fel.Version = f.attribute(e, "GTDocumento", "Version")
	return f.parts("GTDocumento", []part{
		{name: "SAT", read: func(safexml.Event) error {
			return f.parts("SAT", []part{
				{name: "DTE", read: func(safexml.Event) error {
					return f.parts("DTE", []part{
						{name: "DatosEmision", read: func(safexml.Event) error { return f.issue() }},
						{name: "Certificacion", read: func(safexml.Event) error { return f.certification() }},
					})
				}},
			})
		}},
	})
}

// part is an element that a document has once, or with many, at least once.
type part struct {
	name string
	many bool
	read func(safexml.Event) error
}

// parts reads the elements of FEL inside of one, and notes which of parts are
// missing or repeated; other elements are passed over. Signatures are counted
// wherever they stand.
func (f *felReader) parts(inside string, parts []part) error {
	seen := make([]int, len(parts))
	err := f.Children(func(e safexml.Event) error {
		if e.Is(spaceSignature, "Signature") {
			f.fel.Signatures++
			return nil
		}
		for i, p := range parts {
			if !e.Is(spaceFEL, p.name) {
				continue
			}
			if seen[i]++; seen[i] > 1 && !p.many {
				f.missing("%s tiene más de un %s.", inside, p.name)
				return nil
			}
			if p.read != nil {
				return p.read(e)
			}
		}
		return nil
	})
	for i, p := range parts {
		if err == nil && seen[i] == 0 {
			f.missing("%s no tiene %s.", inside, p.name)
		}
	}
	return err
}

// attribute returns an attribute that must be there, and may be empty.
func (f *felReader) attribute(e safexml.Event, element, name string) string {
	value, ok := e.Attr(name)
	if !ok {
		f.missing("%s no tiene el atributo %s.", element, name)
	}
	return strings.TrimSpace(value)
}

// stated returns an attribute that must say something.
func (f *felReader) stated(e safexml.Event, element, name string) string {
	value := f.attribute(e, element, name)
	if value == "" {
		f.missing("El atributo %s de %s está vacío.", name, element)
	}
	return value
}

// leaf reads a required text into to.
func (f *felReader) leaf(name string, to *string) part {
	return part{name: name, read: func(safexml.Event) error {
		text, err := f.Text()
		if *to = strings.TrimSpace(text); *to == "" && err == nil {
			f.missing("%s está vacío.", name)
		}
		return err
	}}
}

// amount reads a required number into to.
func (f *felReader) amount(name string, to *string) part {
	p := f.leaf(name, to)
	read := p.read
	p.read = func(e safexml.Event) error {
		err := read(e)
		if err == nil && *to != "" && !isDecimal(*to) {
			f.missing("%s lleva un número, como 100.00; tiene «%s».", name, quote(*to))
		}
		return err
	}
	return p
}

// isDecimal accepts digits, with a point and more digits or without.
func isDecimal(s string) bool {
	whole, fraction, pointed := strings.Cut(s, ".")
	return whole != "" && allDigits(whole) && allDigits(fraction) && pointed == (fraction != "")
}

// issue reads DatosEmision.
func (f *felReader) issue() error {
	fel := &f.fel
	return f.parts("DatosEmision", []part{
		{name: "DatosGenerales", read: func(e safexml.Event) error {
			fel.Type = f.stated(e, "DatosGenerales", "Tipo")
			fel.Issued = f.stated(e, "DatosGenerales", "FechaHoraEmision")
			fel.Currency = f.stated(e, "DatosGenerales", "CodigoMoneda")
			return nil
		}},
		{name: "Emisor", read: func(e safexml.Event) error {
			fel.Issuer.ID = f.stated(e, "Emisor", "NITEmisor")
			fel.Issuer.Name = f.stated(e, "Emisor", "NombreEmisor")
			fel.Branch = f.attribute(e, "Emisor", "CodigoEstablecimiento")
			fel.Trade = f.attribute(e, "Emisor", "NombreComercial")
			f.attribute(e, "Emisor", "AfiliacionIVA")
			return f.parts("Emisor", []part{{name: "DireccionEmisor"}})
		}},
		{name: "Receptor", read: func(e safexml.Event) error {
			fel.Receiver.ID = f.stated(e, "Receptor", "IDReceptor")
			fel.Receiver.Name = f.attribute(e, "Receptor", "NombreReceptor")
			switch special, ok := e.Attr("TipoEspecial"); {
			case ok && (special == PartyCUI || special == PartyForeign):
				fel.Receiver.Kind = special
			case ok:
				fel.Receiver.Kind = PartyOther
			}
			return nil
		}},
		{name: "Items", read: func(safexml.Event) error {
			return f.parts("Items", []part{{name: "Item", many: true, read: f.item}})
		}},
		{name: "Totales", read: func(safexml.Event) error {
			return f.parts("Totales", []part{f.amount("GranTotal", &fel.Total)})
		}},
	})
}

// item reads one line.
func (f *felReader) item(e safexml.Event) error {
	f.fel.Items++
	f.attribute(e, "Item", "NumeroLinea")
	if kind := f.stated(e, "Item", "BienOServicio"); kind != "" && kind != "B" && kind != "S" {
		f.missing("BienOServicio de un Item es B o S; tiene «%s».", quote(kind))
	}
	var amount, text string
	return f.parts("Item", []part{
		f.amount("Cantidad", &amount), f.leaf("Descripcion", &text), f.amount("PrecioUnitario", &amount),
		f.amount("Precio", &amount), f.amount("Total", &amount),
	})
}

// certification reads Certificacion.
func (f *felReader) certification() error {
	fel := &f.fel
	return f.parts("Certificacion", []part{
		f.leaf("NITCertificador", &fel.Certifier.ID),
		f.leaf("NombreCertificador", &fel.Certifier.Name),
		{name: "NumeroAutorizacion", read: func(e safexml.Event) error {
			fel.serie = f.stated(e, "NumeroAutorizacion", "Serie")
			fel.numero = f.stated(e, "NumeroAutorizacion", "Numero")
			return f.leaf("NumeroAutorizacion", &fel.uuid).read(e)
		}},
		f.leaf("FechaHoraCertificacion", &fel.Certified),
	})
}
