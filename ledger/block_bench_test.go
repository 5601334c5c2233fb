package ledger_test

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"cotejo/ledger"
	"cotejo/store"
)

// companies gives answers about companies as they are with some thirty sources: a
// registro of 7 KB and an acta of 11 KB that differ from one company to the next in
// RFC, hash and id. One of fifty is on a list.
type companies struct {
	rng                                 *rand.Rand
	before, between, after, acta, actas string
	registro, text                      []byte
}

func newCompanies() *companies {
	rng := rand.New(rand.NewPCG(1, 2))
	sha := func() string {
		var b [32]byte
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
		return hex.EncodeToString(b[:])
	}
	var fuentes, versiones strings.Builder
	for i := range 30 {
		sum := sha()
		fmt.Fprintf(&fuentes, `,{"antiguedad_dias":%d,"corte":"2026-0%d-28","desactualizada":false,"id":"sat_art69_lista_%d","registros_en_version":%d,"sha256":"%s"}`,
			20+i, 1+i%9, i, 1000+rng.IntN(100000), sum)
		fmt.Fprintf(&versiones, `,{"descargada":"2026-11-%02dT05:00:0%d-06:00","id":%d,"obtenida_de":"http://omawww.sat.gob.mx/cifras_sat/Documents/Lista_%d.csv","publicada_en_reset":"2026-11-%02dT05:10:00-06:00","sha256":"%s","source":"sat_art69_lista_%d","ultima_modificacion_servidor":"2026-11-%02dT17:45:21Z","url":"http://omawww.sat.gob.mx/cifras_sat/Paginas/datos/vinculo.html?page=ListCompleta69_%d.html"}`,
			1+i%20, i%10, i+1, i, 1+i%20, sum, i, 1+i%20, i)
	}
	return &companies{
		rng:    rng,
		before: `{"edicion_sha256":"` + sha() + `","entrada":{"rfc":"`,
		between: `","sancionados":true},"fecha":"2026-11-20","motor":"COMPANY/3","observado":null,"resultado":{"advertencia":"` +
			`Hechos publicados; no es una calificación crediticia. No aparecer no es una aprobación.","fuentes":[` + fuentes.String()[1:] + `],"rfc":"`,
		after: `","sat_69b":{"estado":"SIN_COINCIDENCIA_EN_LA_VERSION_CONSULTADA","situaciones":[]},"tipo_persona":"moral"}}`,
		acta:  `{"consultado":"2026-11-20T06:00:00-06:00","engine_version":"1.0.0","registro_sha256":"`,
		actas: `","versiones":[` + versiones.String()[1:] + `]}`,
	}
}

// next writes the texts about one more company; they are valid until the next call.
func (c *companies) next(id ledger.VerificationID) (registro []byte, sum [sha256.Size]byte, acta []byte) {
	rfc := make([]byte, 0, 12)
	for i := range 12 {
		switch {
		case i < 3:
			rfc = append(rfc, 'A'+byte(c.rng.IntN(26)))
		default:
			rfc = append(rfc, '0'+byte(c.rng.IntN(10)))
		}
	}
	c.registro = append(append(append(c.registro[:0], c.before...), rfc...), c.between...)
	c.registro = append(append(c.registro, rfc...), c.after...)
	if c.rng.IntN(50) == 0 {
		c.registro = c.registro[:len(c.registro)-2]
		for i := range 1 + c.rng.IntN(4) {
			c.registro = fmt.Appendf(c.registro, `,"detalle_%d":{"nombre":"COMERCIALIZADORA %d SA DE CV","oficio":"500-05-2026-%d","publicado":"2026-0%d-11"}`,
				i, c.rng.Uint64(), c.rng.IntN(100000), 1+i)
		}
		c.registro = append(c.registro, `}}`...)
	}
	sum = sha256.Sum256(c.registro)
	c.text = hex.AppendEncode(append(c.text[:0], c.acta...), sum[:])
	c.text = append(c.text, `","verification_id":"`...)
	c.text = append(id.AppendTo(c.text), c.actas...)
	return c.registro, sum, c.text
}

// answers are written beforehand, so that a bench measures what is done with them.
type prepared struct {
	registro, acta []byte
	sum            [sha256.Size]byte
}

// BenchmarkBlock measures what one record costs to code when what writes its texts is
// left out: RFC, hash and id are put where those of the record before stood.
func BenchmarkBlock(b *testing.B) {
	l, _ := newLedger(b)
	o, build := orderOf(openOrder(orderID(b, l, start), 1000)), builder(b, l)
	ids, n, err := l.NextIDs(ctx, "COM", start, ledger.MaxBlockRecords)
	if err != nil || n != ledger.MaxBlockRecords {
		b.Fatal(n, err)
	}
	build.Reset(o, 1, ids, n)
	com := newCompanies()
	com.rng = rand.New(rand.NewPCG(3, 3))
	registro, sum, acta := com.next(build.NextID())
	rfc := [2]int{len(com.before), len(com.before) + 12 + len(com.between)}
	hash, id := len(com.acta), len(com.acta)+64+len(`","verification_id":"`)
	b.Logf("registro %d bytes, acta %d", len(registro), len(acta))
	note := []byte("0123456789abcdef")
	size := 0
	b.ReportAllocs()
	b.ResetTimer()
	for i := 0; i < b.N; {
		build.Reset(o, 1, ids, n)
		for ; build.Room() && i < b.N; i++ {
			for k := 0; k < len(sum); k += 8 {
				binary.LittleEndian.PutUint64(sum[k:], com.rng.Uint64())
			}
			for k := range 8 {
				registro[rfc[0]+3+k] = '0' + sum[k]%10
				registro[rfc[1]+3+k] = '0' + sum[k]%10
			}
			hex.Encode(acta[hash:], sum[:])
			build.NextID().AppendTo(acta[id:id:len(acta)])
			if err := build.Add("COMPANY_OK", registro, sum, acta, note); err != nil {
				b.Fatal(err)
			}
		}
		size += build.Block().Size()
	}
	b.ReportMetric(float64(size)/float64(b.N), "bytes/record")
}

// BenchmarkOrder measures a whole order on a disk: coding, and storing block by block.
// bytes/record is what a record adds to the folder of the store, all included.
func BenchmarkOrder(b *testing.B) {
	s, err := store.OpenPebble(b.TempDir(), store.PebbleOptions{})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	l, err := ledger.Open(s, ledger.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	credit(b, l, 1, start, ledger.MaxCentavos)
	build := builder(b, l)
	com := newCompanies()
	note := []byte("0123456789abcdef")
	b.ReportAllocs()
	b.ResetTimer()
	var coding, storing time.Duration
	for left := b.N; left > 0; {
		c := openOrder(orderID(b, l, start), min(left, ledger.MaxOrderUnits))
		c.Price, c.Steps = 1, nil
		do[ledger.OrderOpened](b, l, 1, c)
		o := orderOf(c)
		for done := 0; done < c.Units; {
			ids, n, err := l.NextIDs(ctx, "COM", start, min(ledger.MaxBlockRecords, c.Units-done))
			if err != nil {
				b.Fatal(err)
			}
			build.Reset(o, done+1, ids, n)
			b.StopTimer()
			var list []prepared
			for i := range n {
				id := ids
				id.Counter += uint32(i)
				id.Code = l.CodeOf(id)
				registro, sum, acta := com.next(id)
				list = append(list, prepared{append([]byte(nil), registro...), append([]byte(nil), acta...), sum})
			}
			b.StartTimer()
			began := time.Now()
			for k := 0; build.Room(); k++ {
				p := &list[k]
				if err := build.Add("COMPANY_OK", p.registro, p.sum, p.acta, note); err != nil {
					b.Fatal(err)
				}
			}
			block := build.Block()
			coding += time.Since(began)
			began = time.Now()
			done = do[ledger.OrderFilled](b, l, 1, ledger.FillOrder{Now: start, Block: block}).Done
			storing += time.Since(began)
		}
		left -= c.Units
	}
	b.ReportMetric(float64(coding.Nanoseconds())/float64(b.N), "coding-ns/record")
	b.ReportMetric(float64(storing.Nanoseconds())/float64(b.N), "storing-ns/record")
}

// BenchmarkOrderRecords measures what it costs to read one record of an order.
func BenchmarkOrderRecords(b *testing.B) {
	l, _ := newLedger(b)
	credit(b, l, 1, start, ledger.MaxCentavos)
	c := openOrder(orderID(b, l, start), 20*ledger.MaxBlockRecords)
	do[ledger.OrderOpened](b, l, 1, c)
	o, build, com := orderOf(c), builder(b, l), newCompanies()
	for done := 0; done < c.Units; {
		ids, n, err := l.NextIDs(ctx, "COM", start, ledger.MaxBlockRecords)
		if err != nil {
			b.Fatal(err)
		}
		for build.Reset(o, done+1, ids, n); build.Room(); {
			registro, sum, acta := com.next(build.NextID())
			if err := build.Add("COMPANY_OK", registro, sum, acta, nil); err != nil {
				b.Fatal(err)
			}
		}
		done = do[ledger.OrderFilled](b, l, 1, ledger.FillOrder{Now: start, Block: build.Block()}).Done
	}
	b.ReportAllocs()
	b.ResetTimer()
	for left := b.N; left > 0; {
		err := l.Read(1).OrderRecords(o.OrderKey, 1, min(left, c.Units), func(r *ledger.Record) error {
			left--
			b.SetBytes(int64(len(r.Registro) + len(r.Acta)))
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
	}
}
