package checks

import "testing"

// What a validator costs when it answers: reading, check digit and fault.

func BenchmarkRFC(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		rfc, _, err := ReadRFC("MHTR93041179A")
		if err != nil || !rfc.CheckDigit().Matches() {
			b.Fatal(err)
		}
	}
}

func BenchmarkCURP(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		curp, _, err := ReadCURP("GOMC000229XDFMRRA3")
		if err != nil || curp.Fault() != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCLABE(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		clabe, _, err := ReadCLABE("002010077777777771")
		if err != nil || clabe.Fault() != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCard(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		card, _, err := ReadCard("4012888888881881")
		if err != nil || card.Fault() != nil {
			b.Fatal(err)
		}
	}
}
