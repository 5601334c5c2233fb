package identifiers

import (
	"sync/atomic"

	"cotejo/catalog"
	"cotejo/checks"
	"cotejo/civil"
	"cotejo/operation"
)

// What is odd about the bank or the plaza of a CLABE, which decides nothing.
const (
	noteNoBank  = "banco_desconocido"
	noteNoSPEI  = "banco_fuera_del_spei"
	noteChanged = "banco_cambio_de_titular"
	noteNoPlaza = "plaza_desconocida"
)

const clabeNotice = "Una CLABE bien formada puede no existir; esto no dice de quién es la cuenta, si está activa ni si la institución está autorizada hoy. " +
	"Los nombres son de las listas y fechas que se indican; una clave puede cambiar de titular. La lista de plazas no es oficial."

// names says what the catalogues know of each bank and each plaza, as it is
// answered. It never changes.
type names struct {
	set           *catalog.Set
	banks, plazas [1000]named // by the number that the three digits write
	unknownBank   named
	unknownPlaza  named
	tail          []byte // advertencia and fuentes, with their names
	basis         string // what a movement says of them
}

// named is one bank or plaza: the value of its member, and the observations that
// it brings, without a comma around.
type named struct{ value, notes []byte }

// book keeps the names of the catalogues that answers are given from. Test keys
// are answered from those of the binary, live ones from those of the edition.
type book struct{ embedded, loaded atomic.Pointer[names] }

// names returns those of a set. They are written anew when it is another one.
func (b *book) names(set *catalog.Set) *names {
	kept := &b.loaded
	if set == catalog.Embedded() {
		kept = &b.embedded
	}
	n := kept.Load()
	if n == nil || n.set != set {
		n = namesOf(set)
		kept.Store(n)
	}
	return n
}

func (b *book) answer(dst []byte, in operation.Input) ([]byte, operation.Computed, error) {
	r, _ := operation.Get[reading[checks.CLABE]](in, clabe)
	n := b.names(catalog.Of(in.Edition()))
	return n.appendCLABE(dst, r), operation.Computed{Code: code, Charged: true, Basis: n.basis}, nil
}

func (n *names) appendCLABE(dst []byte, r reading[checks.CLABE]) []byte {
	fault := r.id.Fault()
	bank, plaza := &n.banks[number(r.id.Bank())], &n.plazas[number(r.id.Plaza())]
	if bank.value == nil {
		bank = &n.unknownBank
	}
	if plaza.value == nil {
		plaza = &n.unknownPlaza
	}
	dst = appendHead(dst, fault)
	dst = appendText(dst, `,"clabe":`, r.id.String())
	dst = appendText(dst, `,"clave_banco":`, r.id.Bank())
	dst = append(append(dst, `,"banco":`...), bank.value...)
	dst = appendText(dst, `,"clave_plaza":`, r.id.Plaza())
	dst = append(append(dst, `,"plaza":`...), plaza.value...)
	dst = appendText(dst, `,"cuenta":`, r.id.Account())
	dst = appendVerdict(dst, r.id.CheckDigit(), fault)
	for _, notes := range [...][]byte{bank.notes, plaza.notes} {
		if len(notes) > 0 {
			dst = append(appendComma(dst), notes...)
		}
	}
	return append(appendChanges(dst, r.changes), n.tail...)
}

// number is what three digits write.
func number(digits string) int {
	return int(digits[0]-'0')*100 + int(digits[1]-'0')*10 + int(digits[2]-'0')
}

func namesOf(set *catalog.Set) *names {
	n := &names{set: set}
	listed := set.Banks.Listed()
	n.unknownBank = named{[]byte("null"), appendNotes(nil, noteNoBank,
		"La clave de banco no está en la lista del "+listed.String()+": revise los tres primeros dígitos. No invalida la CLABE: la institución puede ser más nueva que la lista.")}
	n.unknownPlaza = named{[]byte("null"), appendNotes(nil, noteNoPlaza,
		"La clave de plaza no está en la recopilación que se consulta, que no es oficial: no invalida la CLABE.")}
	for code, bank := range set.Banks.All {
		n.banks[number(code)] = bankNames(bank, listed)
	}
	for code, plaza := range set.Plazas.All {
		n.plazas[number(code)] = named{value: plazaNames(plaza)}
	}
	n.tail = append(appendText(nil, `,"advertencia":`, clabeNotice), `,"fuentes":[`...)
	for _, v := range [...]*catalog.Version{set.Banks.Version(), set.Banks.List(), set.Plazas.Version()} {
		if v != nil {
			n.tail = append(v.AppendMembers(append(appendComma(n.tail), '{'), "lista"), '}')
		}
	}
	n.basis = set.Banks.Basis() + "; " + set.Plazas.Version().Basis
	n.tail = append(n.tail, ']')
	return n
}

// bankNames answers as /v1/catalogo/banco does, without what depends on a day.
func bankNames(b catalog.Bank, listed civil.Date) named {
	dst := appendKnown(nil, `{"nombre":`, b.Name())
	dst = appendKnown(dst, `,"clase":`, string(b.Class))
	dst = appendFlag(dst, `,"spei":{"participa":`, b.InSPEI)
	dst = appendKnown(dst, `,"clave":`, b.SPEI)
	name := b.SPEIName
	if !b.InSPEI {
		name = ""
	}
	dst = appendKnown(dst, `,"nombre":`, name)
	dst = appendDay(append(dst, `,"lista_del":`...), listed)
	dst = append(dst, `},"catalogo_sat":`...)
	if b.SATName == "" && b.SATLegalName == "" {
		dst = append(dst, "null"...)
	} else {
		dst = appendKnown(dst, `{"nombre":`, b.SATName)
		dst = appendKnown(dst, `,"razon_social":`, b.SATLegalName)
		dst = appendKnown(dst, `,"desde":`, b.SATValidity.From.String())
		dst = appendKnown(dst, `,"hasta":`, b.SATValidity.To.String())
		dst = append(dst, '}')
	}
	dst = appendKnown(dst, `,"nombre_comun":`, b.CommonName)
	dst = append(appendFlag(dst, `,"cambio_de_titular_o_nombre":`, b.Changed), '}')
	var notes []byte
	if b.Changed {
		notes = appendNotes(notes, noteChanged, "La clave cambió de titular o de nombre después de la lista del SAT: catalogo_sat no nombra al participante de hoy.")
	}
	if !b.InSPEI {
		left := "no se sabe qué día salió"
		if end := b.SATValidity.To; !end.IsZero() {
			left = "el SAT la dio por terminada el " + end.String()
		}
		notes = appendNotes(notes, noteNoSPEI, "La clave no está en la lista de participantes del SPEI del "+listed.String()+"; "+left+
			". No invalida la CLABE, pero la cuenta puede no recibir transferencias.")
	}
	return named{dst, notes}
}

func plazaNames(p catalog.Plaza) []byte {
	dst := []byte(`{"poblaciones":[`)
	for _, town := range p.Towns {
		dst = appendText(appendComma(dst), `{"nombre":`, town.Name)
		dst = append(appendKnown(dst, `,"estado":`, town.State), '}')
	}
	return append(dst, "]}"...)
}

// appendNotes appends an observation to others that have no bracket around.
func appendNotes(dst []byte, code, message string) []byte {
	if len(dst) > 0 {
		dst = append(dst, ',')
	}
	return appendRule(dst, code, message)
}
