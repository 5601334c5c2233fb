package generate

import "strconv"

// buyer is an invented institution with its purchasing units.
type buyer struct {
	name, short string
	bare        bool // its name has quotes that nobody escapes
	branch      int
	branchName  string
	letters     string // of its key
	units       []string
}

const institutions = 60

// buyers are the same at every seed. pick prefers the first.
func (g *generator) buyers() (all []buyer) {
	for i := range institutions {
		g.pcg.Seed(mix(seedInstitution), mix(uint64(i)))
		invented := func() string { return string(g.appendInvented(nil)) }
		b := buyer{branch: 2 + g.random.IntN(50), branchName: one(g, branches), bare: i == 6}
		b.name = one(g, institutionNames) + " " + invented()
		if b.bare {
			b.name = latin("HOSPITAL GENERAL DE XALURINO \"DR. BELINAGA MéRIDOR\"")
		}
		for range 3 {
			b.letters += string(rune('A' + g.random.IntN(26)))
		}
		b.short = "I" + b.letters
		for range 30 {
			b.units = append(b.units, one(g, unitNames)+" "+invented())
		}
		all = append(all, b)
	}
	return all
}

// write writes the name.
func (b *buyer) write(r *record) {
	if b.bare {
		r.bare(b.name)
	} else {
		r.add(b.name)
	}
}

// pick picks a buyer: number i as often as 1/(i+1) says.
func pick(g *generator, all []buyer) *buyer {
	for {
		i := g.random.IntN(len(all))
		if g.random.IntN(i/2+1) == 0 {
			return &all[i]
		}
	}
}

// title makes title and description of a contract.
func (g *generator) title(c *contract) {
	b := c.title[:0]
	b = append(append(b, one(g, actions)...), ' ')
	b = append(append(b, one(g, objects)...), ' ')
	b = append(append(b, one(g, purposes)...), ' ')
	b = g.appendInvented(b)
	if g.chance(500_000) {
		b = strconv.AppendInt(append(b, ", EJERCICIO "...), int64(c.year.year), 10)
	}
	c.title = b
	c.more = append(c.more[:0], c.title...)
	switch n := g.random.IntN(1_000_000); {
	case n < multiline:
		c.more = append(append(c.more, ",\n"...), one(g, clauses)...)
	case n < 400_000:
		c.more = append(append(c.more, ", "...), one(g, clauses)...)
	}
}

var (
	branches = latins("SALUD IMAGINARIA", "COMUNICACIONES Y CAMINOS INVENTADOS", "EDUCACIÓN FICTICIA", "ENERGÍA SUPUESTA", "MEDIO AMBIENTE HIPOTÉTICO",
		"ENTIDADES NO SECTORIZADAS INVENTADAS", "AGRICULTURA Y DESARROLLO IMAGINARIOS")
	institutionNames = latins("INSTITUTO IMAGINARIO DE SEGURIDAD SOCIAL", "COMISIÓN FICTICIA DE AGUA", "SECRETARÍA INVENTADA DE", "CENTRO DE INVESTIGACIÓN SUPUESTA",
		"SERVICIOS DE SALUD IMAGINARIOS DE", "CAMINOS Y PUENTES HIPOTÉTICOS DE", "COLEGIO INVENTADO DE", "FIDEICOMISO FICTICIO DE FOMENTO", "AEROPUERTOS IMAGINARIOS DE")
	unitNames = latins("COORDINACIÓN DE ABASTECIMIENTO Y EQUIPAMIENTO", "DEPARTAMENTO DE ADQUISICIÓN DE BIENES Y CONTRATACIÓN DE SERVICIOS", "SUBDIRECCIÓN DE RECURSOS MATERIALES",
		"OFICINA DE ADQUISICIONES DE LA DELEGACIÓN", "DIRECCIÓN DE OBRAS Y CONSERVACIÓN", "GERENCIA DE CONTRATOS", "UNIDAD DE ADMINISTRACIÓN Y FINANZAS")
	actions = latins("ADQUISICIÓN DE", "SERVICIO DE MANTENIMIENTO PREVENTIVO Y CORRECTIVO A", "SUMINISTRO DE", "CONTRATACIÓN DEL SERVICIO DE", "ARRENDAMIENTO DE",
		"COMPRA CONSOLIDADA DE", "REHABILITACIÓN DE", "CONSERVACIÓN PERIÓDICA DE", "SERVICIO INTEGRAL DE")
	objects = latins("MEDICAMENTOS Y BIENES TERAPÉUTICOS", "EQUIPO DE CÓMPUTO", "VÍVERES", "MATERIAL DE CURACIÓN", "VEHÍCULOS", "LIMPIEZA", "VIGILANCIA", "CAMINOS RURALES",
		"ELEVADORES", "IMPRESIÓN Y FOTOCOPIADO", "COMBUSTIBLE PARA VEHÍCULOS AUTOMOTORES", "PAPELERÍA Y ARTÍCULOS DE ESCRITORIO", "EQUIPO MÉDICO", "LICENCIAS DE PROGRAMAS",
		"REACTIVOS DE LABORATORIO", "UNIFORMES", "FUMIGACIÓN", "RECOLECCIÓN DE RESIDUOS")
	purposes = latins("PARA EL HOSPITAL GENERAL DE", "PARA LAS OFICINAS CENTRALES DE", "PARA LAS GUARDERÍAS DE", "DEL TRAMO CARRETERO DE", "PARA LA UNIDAD DE MEDICINA FAMILIAR DE",
		"EN EL CENTRO DE TRABAJO DE", "PARA EL ALMACÉN DELEGACIONAL DE")
	clauses = latins("CONFORME AL ANEXO TÉCNICO Y A LA PROPUESTA ECONÓMICA DEL PROVEEDOR", "CON CARGO AL PRESUPUESTO AUTORIZADO", "POR EL PERIODO QUE SE INDICA EN EL CONTRATO",
		"QUE INCLUYE MANO DE OBRA Y REFACCIONES", "PARTIDAS ADJUDICADAS EN EL ACTA DE FALLO", "CON ENTREGAS SEMANALES EN LOS ALMACENES DE LA CONVOCANTE")
	templates        = latins("01. LICITACIÓN PÚBLICA LAASSP", "06. ADJUDICACIÓN DIRECTA LAASSP", "03. INVITACIÓN A CUANDO MENOS TRES PERSONAS", "07. PROYECTO DE OBRA LOPSRM")
	grounds          = latins("LAASSP", "LOPSRM", "LAASSP ART. 42", "")
	kinds            = latins("SERVICIOS", "ADQUISICIONES", "SERVICIOS", "ADQUISICIONES", "ARRENDAMIENTOS", "OBRA PÚBLICA", "SERVICIOS RELACIONADOS CON LA OBRA")
	procedures       = latins("LICITACIÓN PÚBLICA", "ADJUDICACIÓN DIRECTA", "ADJUDICACIÓN DIRECTA POR MONTOS MÁXIMOS POR EXCEPCIÓN", "INVITACIÓN A CUANDO MENOS TRES PERSONAS", "ADJUDICACIÓN DIRECTA POR URGENCIA Y EVENTUALIDAD")
	ways             = latins("ELECTRÓNICA", "MIXTA", "PRESENCIAL")
	states2022       = []string{"Activo", "Expirado", "Expirado", "Terminado"}
	sizes            = latins("MICRO", "PEQUEÑA", "MEDIANA", "NO MIPYME", "")
	laws             = []string{"LAASSP", "LAASSP", "LAASSP", "LOPSRM"}
	articles         = latins("ART. 55 PÁRRAFO PRIMERO", "ART. 54 FR. V", "ART. 41 FR. III", "ART. 42 PÁRRAFO PRIMERO")
	exceptions       = latins("ADQUISICIONES, ARRENDAMIENTOS Y SERVICIOS, DENTRO DE LOS MONTOS MÁXIMOS ESTABLECIDOS EN EL PEF.", "CONTRATACIONES PARA ATENDER UNA EVENTUALIDAD POR CASO FORTUITO O DE FUERZA MAYOR.", "PATENTES, LICENCIA EXCLUSIVA U OBRA DE ARTE.")
	institutionKinds = latins("INSTITUCIÓN DE SEGURO", "SECRETARÍA DE ESTADO", "ORGANISMO DESCENTRALIZADO", "EMPRESA DE PARTICIPACIÓN")
	currencies       = []string{"USD", "USD", "USD", "EUR"}
)
