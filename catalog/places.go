package catalog

import (
	"errors"
	"fmt"

	"cotejo/checks"
	"cotejo/civil"
)

// Town is a place of a CLABE plaza.
type Town struct {
	Name string
	// State is the ISO 3166-2 code (MX-JAL) where the source states one. The other
	// towns of a plaza may lie in another state.
	State string
}

// Plaza is a CLABE plaza: digits 4 to 6. Several towns may share one.
type Plaza struct {
	Code string
	// Towns is shared and read-only.
	Towns []Town
}

func (Plaza) check(key string) *checks.Problem {
	if isASCII(key, 3, 3, false) {
		return nil
	}
	return malformed("La clave de plaza son 3 dígitos, del cuarto al sexto de la CLABE.")
}

func (Plaza) standing(day civil.Date, version *Version) Standing { return listed(day, version) }

// Plazas is the catalogue of CLABE plazas, a collection that no authority
// publishes: a plaza that is not in it does not make a CLABE wrong.
type Plazas struct {
	Table[Plaza]
}

// ReadPlazas reads the catalogue clabe_plazas, which has a row for each town.
func ReadPlazas(data []byte) (*Plazas, error) {
	p := &Plazas{Table[Plaza]{places: map[string]int{}}}
	var err error
	p.version, err = ReadFile(data, "clabe_plazas", []string{"plaza", "poblacion", "estado"}, func(f []string) error {
		if f[1] == "" || f[2] != "" && (len(f[2]) != 6 || f[2][:3] != "MX-" || !isASCII(f[2][3:], 3, 3, true)) {
			return errors.New("falta la población, o el estado no es MX-AAA")
		}
		town := Town{Name: f[1], State: f[2]}
		if n := len(p.keys); n > 0 && p.keys[n-1] == f[0] {
			p.rows[n-1].Towns = append(p.rows[n-1].Towns, town)
			return nil
		}
		return p.add(f[0], Plaza{Code: f[0], Towns: []Town{town}})
	})
	if err != nil {
		return nil, err
	}
	return p, nil
}

// PostalCode is what is known of a postal code while the SAT's c_CodigoPostal is
// not loaded: its form, and the state by the custom of its first two digits.
type PostalCode struct {
	Code string
	// State is the SAT's code (JAL) and StateName its name; both empty when no
	// state uses the prefix.
	State, StateName string
	// Loaded: the catalogue says whether the code exists. It never does today.
	Loaded bool
	// Version is of the prefixes.
	Version *Version
}

// Postal is the table of postal prefixes. It is no catalogue of postal codes.
type Postal struct {
	version Version
	states  [100]struct{ code, name string }
}

// Version returns what the table was read from.
func (p *Postal) Version() *Version { return &p.version }

// Of returns what is known of a code. The error is a *checks.Problem; that a code
// passes does not mean that it exists.
func (p *Postal) Of(code string) (PostalCode, error) {
	if !isASCII(code, 5, 5, false) {
		return PostalCode{}, malformed("El código postal son 5 dígitos, con su cero: 01000, no 1000.")
	}
	prefix := int(code[0]-'0')*10 + int(code[1]-'0')
	if prefix == 0 {
		return PostalCode{}, malformed("Ningún código postal empieza con 00.")
	}
	state := p.states[prefix]
	return PostalCode{Code: code, State: state.code, StateName: state.name, Version: &p.version}, nil
}

// ReadPostal reads the catalogue cp_prefijos.
func ReadPostal(data []byte) (*Postal, error) {
	p := &Postal{}
	last := 0
	var err error
	p.version, err = ReadFile(data, "cp_prefijos", []string{"desde", "hasta", "estado", "nombre"}, func(f []string) error {
		if !isASCII(f[0], 2, 2, false) || !isASCII(f[1], 2, 2, false) || !isASCII(f[2], 3, 3, true) || f[3] == "" {
			return errors.New("se esperaban dos prefijos de 2 dígitos, un estado de 3 letras y su nombre")
		}
		from, to := int(f[0][0]-'0')*10+int(f[0][1]-'0'), int(f[1][0]-'0')*10+int(f[1][1]-'0')
		if from <= last || to < from {
			return fmt.Errorf("los prefijos %s a %s no siguen a %02d", f[0], f[1], last)
		}
		for ; from <= to; from++ {
			p.states[from].code, p.states[from].name = f[2], f[3]
		}
		last = to
		return nil
	})
	if err != nil {
		return nil, err
	}
	return p, nil
}
