package safexml

import (
	"io"
	"strings"
	"testing"
)

// BenchmarkNext reads an invoice of many lines, as bytes a second.
func BenchmarkNext(b *testing.B) {
	doc := []byte(`<?xml version="1.0" encoding="UTF-8"?><cfdi:Comprobante xmlns:cfdi="http://www.sat.gob.mx/cfd/4" Version="4.0"><cfdi:Conceptos>` +
		strings.Repeat(`<cfdi:Concepto ClaveProdServ="84111506" Cantidad="1" ClaveUnidad="ACT" Descripcion="Pago de nómina" ValorUnitario="1200.00" `+
			`Importe="1200.00" ObjetoImp="02"><cfdi:Impuestos/></cfdi:Concepto>`+"\r\n", 4000) + `</cfdi:Conceptos></cfdi:Comprobante>`)
	b.SetBytes(int64(len(doc)))
	b.ReportAllocs()
	for b.Loop() {
		r, err := New(doc, Default)
		for err == nil {
			_, err = r.Next()
		}
		if err != io.EOF {
			b.Fatal(err)
		}
	}
}
