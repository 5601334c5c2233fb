package ingest

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"cotejo/ingest/sat69b"
	"cotejo/ingest/tabular"
)

// logicalRows counts the rows of a table behind its titles without a line of the
// readers: a record ends at a line end outside of quotes, quotes open only where a
// cell begins and close only where one ends, and records without text do not count.
// The titles are the first record with a cell RFC, else the first record.
func logicalRows(content []byte) int {
	rows, titles := 0, 0
	quoted, cell, from, text := false, true, 0, false
	end := func(at int) {
		if text {
			if rows++; titles == 0 && titleRFC.Match(content[from:at]) {
				titles = rows
			}
		}
		cell, from, text = true, at+1, false
	}
	for i := 0; i < len(content); i++ {
		b := content[i]
		switch {
		case quoted && b == '"' && i+1 < len(content) && content[i+1] == '"':
			i++
		case quoted && b == '"':
			quoted = i+1 < len(content) && !bytes.ContainsRune([]byte(",\r\n"), rune(content[i+1]))
		case quoted:
			text = true
		case b == '"' && cell:
			quoted, cell = true, false
		case b == '\n':
			end(i)
		default:
			cell = b == ','
			text = text || !bytes.ContainsRune([]byte(", \t\r"), rune(b))
		}
	}
	end(len(content))
	return rows - max(titles, 1)
}

var titleRFC = regexp.MustCompile(`(?i)(^|,)"?rfc"?(,|\r?$)`)

// TestCountOfOficiales: readers, expectations and a counter of its own agree.
func TestCountOfOficiales(t *testing.T) {
	for _, f := range oficialesExpected(t).Archivos {
		content := oficial(t, f.Archivo)
		if n := logicalRows(content); n != f.Filas {
			t.Errorf("%s has %d rows, want %d", f.Archivo, n, f.Filas)
		}
		if f.Fuente == suppliers {
			continue
		}
		if _, sum, err := readOficial(t, f.source(), content); err != nil || sum.Rows != f.Filas {
			t.Errorf("%s: the reader gives %d rows, want %d (%v)", f.Archivo, sum.Rows, f.Filas, err)
		}
	}
}

// TestCountOfRealFiles: the same of every real file. They lie outside the
// repository: COTEJO_SHARED names the folder, and must be right when it is set.
func TestCountOfRealFiles(t *testing.T) {
	root := os.Getenv("COTEJO_SHARED")
	named := root != ""
	if !named {
		root = filepath.Join("..", "..", "shared")
	}
	whole := func(source string) func(content []byte) (int, error) {
		return func(content []byte) (int, error) {
			_, sum, err := readOficial(t, source, content)
			return sum.Rows, err
		}
	}
	part := func(content []byte) (int, error) {
		sum, err := sat69b.ReadPartial(openerOf(content), func(_, _ string) error { return nil })
		return sum.Rows, err
	}
	// cells are the records of a file that no source reads as it lies here.
	cells := func(content []byte) (int, error) {
		rows, err := -1, error(nil) // the titles
		encoding, _ := tabular.Encoding(bytes.NewReader(content))
		r := tabular.NewReader(tabular.NewDecoder(bytes.NewReader(content), encoding))
		r.Loose = true
		for ; err == nil; rows++ {
			_, err = r.Next()
		}
		if errors.Is(err, io.EOF) {
			err = nil
		}
		return rows - 1, err
	}
	list, bis := whole("sat_69b"), whole("sat_69b_bis")
	for _, file := range []struct {
		name string
		rows int
		read func([]byte) (int, error)
	}{
		{"sat-69b/Listado_Completo_69-B_2021-05-18.csv.gz", 12505, list},
		{"sat-69b/Listado_Completo_69-B_2022-11-30.csv.gz", 12666, list},
		{"sat-69b/Listado_Completo_69-B_2023-07_no-preamble.csv.gz", 12686, list},
		{"sat-69b/Definitivos_2019-12-03.csv.gz", 9116, list},
		{"sat-69b/Presuntos_2019-12-03.csv.gz", 1177, list},
		{"sat-69b/Definitivos_2026-01-31.csv.gz", 11336, list},
		{"sat-69b/Presuntos_2026-01-31.csv.gz", 966, list},
		{"sat-69b/Desvirtuados_2026-01-31.csv.gz", 340, list},
		{"sat-69b/Listado_completo_69-B_2026-03_3cols-utf8.csv.gz", 14280, part},
		{"sat-69b/Listado_completo_69-B_2026-05-31_head-excerpt-utf8.csv", 9, list},
		{"sat-69b-bis/Listado_69_B_Bis_Completo_2026-03-12.csv", 3, bis},
		{"sat-69b-bis/Listado_69_B_Bis_Definitivo_2025-06-13.csv", 3, bis},
		{"sat-art69/CSDsinefectos_sample_3rows-utf8.csv", 3, whole("sat_art69_csd_sin_efectos")},
		{"sat-art69/firmes_2018_subset_morales_5cols-utf8.csv", 638, cells},
		{"compranet/contratos_comprasmx_2026_IMSS_21cols-utf8.csv.gz", 3986, cells},
		{"compranet/compranet_historico_sample_8rows-utf8.csv", 8, cells},
		{"compranet/expedientes_comprasmx_2026_header-cp1252.csv", 0, cells},
		{"sancionados/proveedores_sancionados_2021-01-14.csv.gz", 1954, cells},
		{"sancionados/Proveedores_Contratistas_Sancionados_2026-02_export.csv.gz", 2395, cells},
	} {
		content, err := realFile(filepath.Join(root, "data", "mx-sources", filepath.FromSlash(file.name)))
		if errors.Is(err, fs.ErrNotExist) && !named {
			t.Skipf("no está el archivo oficial %s: ponga COTEJO_SHARED", file.name)
		}
		if err != nil {
			t.Fatal(err)
		}
		if n := logicalRows(content); n != file.rows {
			t.Errorf("%s has %d rows, want %d", file.name, n, file.rows)
		}
		if n, err := file.read(content); err != nil || n != file.rows {
			t.Errorf("%s: the reader gives %d rows, want %d (%v)", file.name, n, file.rows, err)
		}
	}
	// Of what a copy has lost a column, no reader makes rows.
	for name, lost := range map[string]string{
		"sat-art69/firmes_2018_subset_morales_5cols-utf8.csv":        "ENTIDAD FEDERATIVA",
		"compranet/contratos_comprasmx_2026_IMSS_21cols-utf8.csv.gz": "Código del contrato",
	} {
		content, err := realFile(filepath.Join(root, "data", "mx-sources", filepath.FromSlash(name)))
		if err != nil {
			t.Fatal(err)
		}
		source := map[bool]string{true: "sat_art69_firmes", false: "compranet_2026"}[strings.HasPrefix(name, "sat")]
		var refusal *tabular.Refusal
		if _, _, err := readOficial(t, source, content); !errors.As(err, &refusal) || !strings.Contains(err.Error(), lost) {
			t.Errorf("%s: %v does not name %s", name, err, lost)
		}
	}
}

func realFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var in io.Reader = f
	if strings.HasSuffix(path, ".gz") {
		if in, err = gzip.NewReader(f); err != nil {
			return nil, err
		}
	}
	return io.ReadAll(in)
}
