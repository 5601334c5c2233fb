package main

import (
	"errors"
	"io/fs"
)

// verify checks an export. The error is for what kept it from looking, and says
// nothing about the export.
func verify(dir fs.FS, o options) (*report, error) {
	r := new(report)
	m, ok, err := readManifest(dir, r)
	if err != nil || !ok {
		return r, err
	}
	if err := checkFiles(dir, &m, r); err != nil {
		return r, err
	}
	if len(r.faults) > 0 {
		r.cannot("lo demás: los archivos no son los del manifiesto")
		return r, nil
	}
	if m.Kind == "parquet" {
		r.cannot("lo que dicen las tablas: aquí solo se revisa que sean los archivos del manifiesto")
		return r, nil
	}
	pins, err := pinsOf(dir, &m, o, r)
	if err != nil {
		return r, err
	}
	if err := checkChain(dir, &m, pins, r); err != nil {
		return r, err
	}
	// What is missing is said already; the rest is looked at all the same.
	c, err := readCatalogue(dir, &m, r)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return r, err
	}
	answers, err := checkAnswers(dir, c, r)
	if err != nil {
		return r, err
	}
	if m.Format > 1 {
		if err := checkOrders(dir, answers, r); err != nil {
			return r, err
		}
	}
	if o.before != nil {
		if err := checkBefore(dir, &m, o.before, r); err != nil {
			return r, err
		}
	}
	limits(&m, o, r)
	return r, nil
}

// pinsOf collects the heads that the chain must pass through.
func pinsOf(dir fs.FS, m *manifest, o options, r *report) (pins []pinned, err error) {
	anchors := map[string][]byte{}
	text, err := readFile(dir, "ancla.json", 64<<10)
	switch {
	case err == nil:
		anchors["ancla.json"] = text
	case errors.Is(err, fs.ErrNotExist):
		r.cannot("el ancla: la exportación no trae ninguna")
	default:
		return nil, err
	}
	if o.anchor != nil {
		anchors["su copia del ancla"] = o.anchor
	}
	for who, text := range anchors {
		heads, err := readAnchor(text)
		if err != nil {
			r.fault("%s: %v", who, err)
			continue
		}
		pins = append(pins, pinned{who, heads})
	}
	if o.before != nil {
		before, ok, err := readManifest(o.before, r)
		if err != nil {
			return nil, err
		}
		if ok {
			pins = append(pins, pinned{"la exportación anterior", before.Heads})
		}
	}
	return pins, nil
}

// checkBefore finds what an earlier export has and this one has not: nothing that
// was answered may change or go away.
func checkBefore(dir fs.FS, m *manifest, before fs.FS, r *report) (err error) {
	var earlier report
	old, ok, err := readManifest(before, &earlier)
	if err != nil {
		return err
	}
	if ok {
		err = checkFiles(before, &old, &earlier)
	}
	if err != nil {
		return err
	}
	for _, what := range earlier.faults {
		r.fault("la exportación anterior: %s", what)
	}
	if len(earlier.faults) > 0 {
		return nil
	}
	if m.Org != "" && m.Org != old.Org {
		r.cannot("que siga todo lo de la exportación anterior: esta es solo de %s", m.Org)
		return nil
	}
	actas := map[string]bool{}
	count := 0
	each := func(dir fs.FS, fn func(string)) (err error) {
		l, err := openLines(dir, "actas.jsonl")
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, l.close()) }()
		for text, more := l.next(); more; text, more = l.next() {
			fn(hash(text))
		}
		return nil
	}
	if err := each(dir, func(sum string) { actas[sum] = true }); err != nil {
		return err
	}
	line := 0
	err = each(before, func(sum string) {
		line++
		if !actas[sum] {
			r.fault("la exportación anterior tiene en la línea %d de actas.jsonl una respuesta que aquí no está o es otra", line)
			return
		}
		count++
	})
	r.check("exportación anterior: %d respuestas siguen aquí, iguales al byte", count)
	return err
}

// limits names what no program can tell from such a folder.
func limits(m *manifest, o options, r *report) {
	r.cannot("quién hizo esta carpeta: no lleva firma. Compare manifiesto_sha256 con el que le dieron por otro medio")
	r.cannot("que los digestos de la cadena sean de estas respuestas: cubren lotes enteros, también valores que ya no se guardan")
	if o.before == nil {
		r.cannot("que no falte ninguna respuesta: solo se nota contra una exportación anterior (-anterior)")
	} else {
		r.cannot("que no falte ninguna respuesta dada después de la exportación anterior")
	}
	if o.anchor == nil {
		r.cannot("que la cadena sea la que el servicio tenía antes: compárela con una copia del ancla que usted guarde (-ancla)")
	}
	r.cannot("de cada acta: la hora de consultado, engine_version, y las letras, el día posterior y el código de verification_id: compárelos con la respuesta que recibió el cliente")
	r.cannot("de cada acta sobre un día anterior: el día de consultado, y estado y situaciones de conocida")
	if m.Format > 1 {
		r.cannot("de cada lote: el número de movimiento de sus cargos, el precio de escalones que ninguna consulta alcanzó, y cuántas consultas se pidieron si no terminó")
	}
	r.cannot("que cada resultado salga de los archivos oficiales: estos no vienen aquí; se reconocen por su SHA-256 y «cotejo recompute» calcula el resultado de nuevo")
	if m.Org != "" {
		r.cannot("las respuestas de otras organizaciones: esta exportación es solo de %s", m.Org)
	}
}
