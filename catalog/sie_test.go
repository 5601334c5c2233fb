package catalog

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// sie writes an answer of the documented shape.
func sie(id, data string) string {
	return fmt.Sprintf(`{"bmx":{"series":[{"idSerie":%q,"titulo":"x","datos":[%s]}]}}`, id, data)
}

func TestParseSIE(t *testing.T) {
	f := func(answer, want string) {
		t.Helper()
		days, err := ParseSIE([]byte(answer), SeriesFIX)
		if err != nil {
			t.Fatalf("%s: %v", answer, err)
		}
		var got []string
		for _, d := range days {
			got = append(got, d.Day.String()+" "+d.Rate.String())
		}
		if strings.Join(got, "; ") != want {
			t.Errorf("%s: %q, se esperaba %q", answer, got, want)
		}
	}
	// The sample of the official documentation.
	f(sie(SeriesFIX, `{"fecha":"02/01/2020","dato":"18.8817"}`), "2020-01-02 18.8817")
	f(sie(SeriesFIX, `{"fecha":"03/01/2020","dato":"18.8673"},{"fecha":"01/01/2020","dato":"N/E"},{"fecha":"02/01/2020","dato":"18.8817"}`),
		"2020-01-01 0.0000; 2020-01-02 18.8817; 2020-01-03 18.8673")
	f(sie(SeriesFIX, `{"fecha":"02/01/2020","dato":"18.8817"},{"fecha":"02/01/2020","dato":"18.8817"}`), "2020-01-02 18.8817")
	f(sie(SeriesFIX, ""), "")
	f(`{"bmx":{"series":[{"idSerie":"SF60653","datos":[{"fecha":"x"}]},{"idSerie":"SF43718"}]}}`, "")
}

func TestParseSIERefusals(t *testing.T) {
	f := func(answer, want string) {
		t.Helper()
		days, err := ParseSIE([]byte(answer), SeriesFIX)
		if err == nil || !strings.Contains(err.Error(), want) || days != nil {
			t.Errorf("%.100s: %v %v, se esperaba %q", answer, days, err, want)
		}
	}
	f("", "JSON")
	f("<html>Mantenimiento</html>", "JSON")
	f(sie(SeriesFIX, "")+"x", "JSON")
	f(`[]`, "JSON")
	f(`{}`, "no trae la serie")
	f(`{"bmx":{}}`, "no trae la serie")
	f(sie("SF60653", `{"fecha":"02/01/2020","dato":"18.8817"}`), "no trae la serie")
	f(`{"bmx":{"series":[{"idSerie":"SF43718"},{"idSerie":"SF43718"}]}}`, "dos veces")
	f(sie(SeriesFIX, `{"fecha":"2020-01-02","dato":"18.8817"}`), "DD/MM/AAAA")
	f(sie(SeriesFIX, `{"fecha":"30/02/2020","dato":"18.8817"}`), "DD/MM/AAAA")
	f(sie(SeriesFIX, `{"fecha":"0²/01/2020","dato":"18.8817"}`), "DD/MM/AAAA")
	f(sie(SeriesFIX, `{"dato":"18.8817"}`), "DD/MM/AAAA")
	f(sie(SeriesFIX, `{"fecha":"02/01/2020"}`), "tipo de cambio")
	f(sie(SeriesFIX, `{"fecha":"02/01/2020","dato":""}`), "tipo de cambio")
	f(sie(SeriesFIX, `{"fecha":"02/01/2020","dato":"0"}`), "entre 0.0001")
	f(sie(SeriesFIX, `{"fecha":"02/01/2020","dato":18.8817}`), "JSON") // a number would pass through a float
	f(sie(SeriesFIX, `{"fecha":"02/01/2020","dato":"18.88171"}`), "4 decimales")
	f(sie(SeriesFIX, `{"fecha":"02/01/2020","dato":"18.8817"},{"fecha":"02/01/2020","dato":"18.8818"}`), "dos valores")
	f(sie(SeriesFIX, `{"fecha":"02/01/2020","dato":"18.8817"},{"fecha":"02/01/2020","dato":"N/E"}`), "dos valores")
	f("\xff"+sie(SeriesFIX, ""), "UTF-8")
	f(strings.Repeat(" ", maxSIE+1), "el máximo es")
	row := `{"fecha":"02/01/2020","dato":"18.8817"}`
	f(sie(SeriesFIX, strings.Repeat(row+",", maxSIEObservations)+row), "el máximo es 20000")
	f(`{"bmx":{"series":[`+strings.Repeat(`{"idSerie":"SF1"},`, maxSIESeries)+`{"idSerie":"SF43718"}]}}`, "no trae la serie")
	if _, err := ParseSIE([]byte(`{"bmx":{"series":[]}}`), SeriesFIX); !errors.Is(err, ErrNoSeries) {
		t.Errorf("%v", err)
	}
}

func TestSIERefusal(t *testing.T) {
	long := strings.Repeat("ñ", 1000)
	_, err := ParseSIE([]byte(`{"error":{"mensaje":"Token inválido","detalle":"`+long+`"}}`), SeriesFIX)
	var e *SIEError
	if !errors.As(err, &e) || e.Message != "Token inválido" || len(e.Detail) > maxSIEText || !strings.HasPrefix(long, e.Detail) {
		t.Errorf("%v", err)
	}
}

func FuzzParseSIE(f *testing.F) {
	f.Add([]byte(sie(SeriesFIX, `{"fecha":"03/01/2020","dato":"18.8673"},{"fecha":"01/01/2020","dato":"N/E"}`)))
	f.Add([]byte(`{"error":{"mensaje":"a","detalle":"b"}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		days, err := ParseSIE(data, SeriesFIX)
		if err != nil {
			return
		}
		var rows []string
		for i, d := range days {
			if i > 0 && !days[i-1].Day.Before(d.Day) || d.Rate < 0 || d.Rate > maxRate {
				t.Fatalf("%v", days)
			}
			value := d.Rate.String()
			if d.Rate == 0 {
				value = notPublished
			}
			text, _ := json.Marshal(map[string]string{
				"fecha": fmt.Sprintf("%02d/%02d/%04d", d.Day.Day, d.Day.Month, d.Day.Year), "dato": value})
			rows = append(rows, string(text))
		}
		again, err := ParseSIE([]byte(sie(SeriesFIX, strings.Join(rows, ","))), SeriesFIX)
		if err != nil || fmt.Sprint(again) != fmt.Sprint(days) {
			t.Fatalf("%v\n%v %v", days, again, err)
		}
	})
}
