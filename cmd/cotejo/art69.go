package main

import (
	"fmt"
	"io"
	"strings"

	"cotejo/civil"
)

// art69 is the block of the lists under article 69.
type art69 struct {
	art69Version
	Missing []struct {
		Lista string `json:"lista"`
	} `json:"listas_no_cargadas"`
	EnFecha *struct {
		Version art69Version `json:"version_en_fecha"`
	} `json:"en_fecha"`
}

type art69Version struct {
	Listas []struct {
		Label   string              `json:"etiqueta_oficial"`
		Name    string              `json:"nombre"`
		Records []map[string]string `json:"registros_oficiales"`
	} `json:"listas"`
	Asked []struct{} `json:"listas_consultadas"`
}

func (l *art69) print(w io.Writer, day civil.Date) {
	l.art69Version.print(w, "Artículo 69")
	if len(l.Missing) > 0 {
		var codes []string
		for _, m := range l.Missing {
			codes = append(codes, m.Lista)
		}
		fmt.Fprintf(w, "  %-30sSin cargar (no equivale a «no aparece»): %s\n", "", strings.Join(codes, ", "))
	}
	if l.EnFecha != nil {
		l.EnFecha.Version.print(w, "  listas al "+day.String())
	}
}

func (v *art69Version) print(w io.Writer, label string) {
	text := fmt.Sprintf("No aparece en las %d listas consultadas (no es una aprobación)", len(v.Asked))
	if len(v.Asked) == 0 {
		text = "Ninguna lista que consultar (no equivale a «no aparece»)"
	}
	for i, item := range v.Listas {
		if i > 0 {
			fmt.Fprintf(w, "  %-30s%s\n", label, text)
			label = ""
		}
		text = fmt.Sprintf("Aparece: %s (%d)   %s", item.Label, len(item.Records), item.Name)
	}
	fmt.Fprintf(w, "  %-30s%s\n", label, text)
}
