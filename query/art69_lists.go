package query

import "cotejo/snapshots"

// Art69List is one of the lists of the SAT under article 69 of the Código Fiscal
// de la Federación, and those that it publishes beside them.
type Art69List struct {
	Code string // what answers call it: "FIRMES"

	// Label is the text with which the authority links the list, and LabelSeen
	// whether it was read on the authority's page; else it is ours.
	Label     string
	LabelSeen bool
	// Basis is the legal ground, and BasisSeen whether the list itself states it.
	// One that is not was recalled, and no lawyer has looked at it yet.
	Basis     string
	BasisSeen bool

	// WhenLinked: nobody knows whether the authority still publishes it. It counts
	// as missing from the edition only after it was found once.
	WhenLinked bool
	// Closed: the list is of a past time and is not added to.
	Closed bool

	Schema snapshots.Schema
}

// Art69Lists are the lists in the order of answers. This table is the one place
// that says what they are called and what they rest on.
var Art69Lists = []Art69List{
	art69List("FIRMES", "Firmes", seen, "CFF art. 69, fracción I", recalled, art69Credits),
	art69List("EXIGIBLES", "Exigibles", seen, "CFF art. 69, fracción II", recalled, art69Credits),
	art69List("NO_LOCALIZADOS", "No localizados", seen, "CFF art. 69, fracción III", recalled, art69Credits),
	art69List("SENTENCIAS", "Sentencias", seen, "CFF art. 69, fracción IV", recalled, art69Credits),
	art69List("CANCELADOS", "Cancelados", seen, "CFF art. 69, fracción V, y art. 146-A", recalled, art69Cancelled),
	art69List("REDUCCION_ART74", "Reducción de multas (Artículo 74 del Código Fiscal de la Federación)", seen, "CFF art. 69, fracción VI", recalled, art69Reduced),
	art69List("CONDONADOS_146B", "Condonados de concurso mercantil (Artículo 146B del Código Fiscal de la Federación)", seen, "CFF art. 69, fracción VI", recalled, art69Forgiven).closed(),
	art69List("REDUCCION_ART21", "Reducción de recargos (Artículo 21 del Código Fiscal de la Federación)", seen, "CFF art. 69, fracción VI", recalled, art69Forgiven).closed(),
	art69List("CONDONADOS_DECRETO", "Condonados por decreto (Del 22 de enero y 26 de marzo de 2015)", seen, "CFF art. 69, fracción VI", recalled, art69Forgiven).closed(),
	art69List("CONDONADOS_07_15", "Condonados del 01 de enero de 2007 al 04 de mayo de 2015", seen, "Ley de transparencia y acceso a la información pública", recalled, art69Forgiven0715).closed(),
	art69List("CANCELADOS_07_15", "Cancelados Artículo 146A del 01 de enero de 2007 al 04 de mayo de 2015", seen, "Ley de transparencia y acceso a la información pública", recalled, art69Cancelled0715).closed(),
	art69List("RETORNO_INVERSIONES", "Retorno de inversiones", seen, "Decreto de 2017 (retorno de inversiones)", recalled, art69Forgiven).closed(),
	art69List("ENTES_PUBLICOS_OMISOS", "Entes públicos y de gobierno omisos", recalled, "CFF art. 69, fracción VII", seen, art69PublicBodies),
	art69List("CSD_SIN_EFECTOS", "Certificado de Sello Digital (CSD) sin efectos", seen, "CFF art. 69, fracción X, y art. 17-H, fracciones X a XII", recalled, art69Seals),
	art69List("ELIMINADOS", "Eliminados No localizados", recalled, "CFF art. 69", recalled, art69Credits).whenLinked(),
}

const seen, recalled = true, false

// Official titles, as they were last seen, of the columns of each layout. Others
// that the same column has had are known to the reader.
var (
	art69Credits = []string{"RFC", "RAZON SOCIAL", "TIPO PERSONA", "SUPUESTO", "FECHA DE PRIMERA PUBLICACION", "ENTIDAD FEDERATIVA"}

	art69Cancelled = []string{"RFC", "RAZON SOCIAL", "TIPO PERSONA", "SUPUESTO", "FECHA DE CANCELACION", "MONTO", "FECHA DE PUBLICACION", "ENTIDAD FEDERATIVA"}

	art69Reduced = []string{"RFC", "NOMBRE, DENOMINACION O RAZON SOCIAL", "TIPO DE PERSONA", "SUPUESTO", "FECHA DE AUTORIZACION", "MONTO", "FECHA DE PUBLICACION", "ENTIDAD FEDERATIVA"}

	art69Forgiven = []string{"RFC", "RAZÓN SOCIAL", "TIPO PERSONA", "SUPUESTO", "FECHAS DE PRIMERA PUBLICACION", "MONTO", "FECHA DE PUBLICACIÓN", "Entidad Federativa"}

	art69Forgiven0715 = []string{"Año", "Tipo persona", "RFC", "Contribuyente", "Importe condonado", "Motivo de condonación", "Entidad Federativa"}

	art69Cancelled0715 = []string{"AÑO", "TIPO PERSONA", "RFC", "CONTRIBUYENTE", "IMPORTE", "Motivo", "ENTIDAD FEDERATIVA"}

	art69PublicBodies = []string{"RFC", "RAZON SOCIAL", "SUPUESTO", "EJERCICIO", "PERIODO", "FECHA DE PRIMERA PUBLICACION"}

	art69Seals = []string{
		"RFC", "NOMBRE O RAZÓN SOCIAL", "SUPUESTO DE CANCELACIÓN CSD", "FECHA DE CANCELACIÓN CSD",
		"ADMINISTRACIÓN GENERAL RESPONSABLE DE LA CANCELACIÓN", "FECHA DE PUBLICACIÓN",
	}
)

const (
	// Lists are renewed one by one: at one look in August they were of 7 August, 24
	// July and 4 May. The largest of them comes at least once a month.
	art69MaxAge       = 120
	art69FirmesMaxAge = 40
	// Of a closed list no newer version is overdue in a lifetime.
	art69ClosedMaxAge = 36500
)

// art69List makes a list. Identity: RFC and a hash of the whole normalised row,
// for the rows have no key of their own; equal ones are told apart by their
// ordinal.
func art69List(code, label string, labelSeen bool, basis string, basisSeen bool, titles []string) Art69List {
	l := Art69List{
		Code: code, Label: label, LabelSeen: labelSeen, Basis: basis, BasisSeen: basisSeen,
		Schema: snapshots.Schema{Source: art69Source(code), Reader: 1, MaxAge: art69MaxAge},
	}
	if code == "FIRMES" {
		l.Schema.MaxAge = art69FirmesMaxAge
	}
	for _, t := range titles {
		l.Schema.Columns = append(l.Schema.Columns, snapshots.Column{Name: t, Tracked: true})
	}
	return l
}

func (l Art69List) closed() Art69List {
	l.Closed, l.Schema.MaxAge = true, art69ClosedMaxAge
	return l
}

func (l Art69List) whenLinked() Art69List {
	l.WhenLinked = true
	return l
}
