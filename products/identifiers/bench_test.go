package identifiers

import (
	"testing"

	"cotejo/catalog"
	"cotejo/checks"
)

// BenchmarkCLABE is what an answer costs beside HTTP.
func BenchmarkCLABE(b *testing.B) {
	banks := new(book)
	dst := make([]byte, 0, 4<<10)
	b.ReportAllocs()
	for b.Loop() {
		id, changes, err := checks.ReadCLABE("002010077777777771")
		if err != nil || len(banks.names(catalog.Embedded()).appendCLABE(dst, reading[checks.CLABE]{id, changes})) == 0 {
			b.Fatal(err)
		}
	}
}
