package evidence

import (
	"archive/zip"
	"context"
	_ "embed"
	"encoding/hex"
	"fmt"
	"io"
	"strconv"

	"cotejo/ledger"
	"cotejo/snapshots"
)

//go:embed LEEME.txt
var readme []byte

// writeArchive writes the dossier as a ZIP: the same JSON text, and beside it what an
// auditor would otherwise cut out of it. Of the same dossier and catalogue it is the
// same bytes.
func (d *dossier) writeArchive(ctx context.Context, w io.Writer, sources *snapshots.Catalogue) error {
	z := zip.NewWriter(w)
	create := func(name string) (io.Writer, error) {
		return z.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Deflate, Modified: d.moment.UTC()})
	}
	put := func(name string, content []byte) error {
		f, err := create(name)
		if err == nil {
			_, err = f.Write(content)
		}
		return err
	}
	if err := put("LEEME.txt", readme); err != nil {
		return err
	}
	f, err := create("expediente.json")
	if err != nil {
		return err
	}
	if err := d.write(ctx, f); err != nil {
		return err
	}
	for _, part := range []struct {
		name string
		of   func(*ledger.Record) []byte
	}{
		{"registros.ndjson", func(r *ledger.Record) []byte { return r.Registro }},
		{"actas.ndjson", func(r *ledger.Record) []byte { return r.Acta }},
	} {
		if f, err = create(part.name); err != nil {
			return err
		}
		if err := d.lines(ctx, f, part.of); err != nil {
			return err
		}
	}
	var missing []byte
	add := func(name string, content []byte, err error) error {
		if err != nil {
			missing = fmt.Appendf(missing, "%s: %v\n", name, err)
			return nil
		}
		return put(name, append(content, '\n'))
	}
	for _, id := range d.used.versionIDs() {
		v, err := sources.Version(id)
		var content []byte
		if err == nil {
			content, err = v.Text()
		}
		if err := add("versiones/"+strconv.Itoa(id)+".json", content, err); err != nil {
			return err
		}
	}
	for _, sum := range d.used.editionSums() {
		name := hex.EncodeToString(sum[:])
		m, err := sources.EditionBySHA256(name)
		var content []byte
		if err == nil {
			content, err = m.Text()
		}
		if err := add("ediciones/"+name+".json", content, err); err != nil {
			return err
		}
	}
	if missing != nil {
		if err := put("FALTANTES.txt", missing); err != nil {
			return err
		}
	}
	return z.Close()
}

// lines writes a text of each record of the dossier, in its order, a line each.
func (d *dossier) lines(ctx context.Context, w io.Writer, of func(*ledger.Record) []byte) error {
	var line []byte
	return d.view.Records(d.org.ID, d.test, d.span.from.Compact(), d.span.to.Compact(), func(r ledger.Record) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		line = append(append(line[:0], of(&r)...), '\n')
		_, err := w.Write(line)
		return err
	})
}
