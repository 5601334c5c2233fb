package tabular

import (
	"strings"
	"testing"
	"unicode"

	"golang.org/x/text/unicode/norm"
	"pgregory.net/rapid"
)

// TestCellsFollowTheirRule compares the normalised forms, which know the cells that
// most files have by their bytes, with what they are defined to be.
func TestCellsFollowTheirRule(t *testing.T) {
	gap := func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }
	text := func(cell string) string { return norm.NFC.String(strings.Join(strings.FieldsFunc(cell, gap), " ")) }
	key := func(cell string) string {
		return norm.NFC.String(strings.Map(unicode.ToUpper, strings.Join(strings.FieldsFunc(cell, gap), "")))
	}
	bare := func(cell string) string {
		return text(strings.Map(func(r rune) rune {
			if unicode.Is(unicode.Mn, r) {
				return -1
			}
			return unicode.ToUpper(r)
		}, norm.NFD.String(text(cell))))
	}
	var alphabet []rune
	for r := rune(0); r < 0x180; r++ {
		alphabet = append(alphabet, r, 'a', 'Z', ' ')
	}
	alphabet = append(alphabet, '\u0301', '\u0303', '\u0327', '€', '“', '\u2003', '\ufffd', 'ɐ', 'ẞ', '한')
	cells := rapid.StringOfN(rapid.SampledFrom(alphabet), 0, 24, -1)
	rapid.Check(t, func(t *rapid.T) {
		cell := cells.Draw(t, "cell")
		for _, form := range []struct {
			name      string
			got, want string
		}{
			{"text", string(AppendText(nil, []byte(cell))), text(cell)},
			{"key", string(AppendKey(nil, []byte(cell))), key(cell)},
			{"folded", string(AppendFolded(nil, []byte(cell))), bare(cell)},
		} {
			if form.got != form.want {
				t.Fatalf("%s of %q: got %q, want %q", form.name, cell, form.got, form.want)
			}
		}
	})
}
