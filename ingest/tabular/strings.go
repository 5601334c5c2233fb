package tabular

import "strings"

// Strings makes strings of cells. They are cut from larger pieces, so that a row
// does not allocate; one that is kept keeps its piece. Its zero value is ready.
type Strings struct{ piece *strings.Builder }

const piece = 64 << 10

// Make copies a cell.
func (s *Strings) Make(cell []byte) string {
	if s.piece == nil || s.piece.Cap()-s.piece.Len() < len(cell) {
		s.piece = &strings.Builder{}
		s.piece.Grow(max(piece, len(cell)))
	}
	start := s.piece.Len()
	s.piece.Write(cell)
	return s.piece.String()[start:]
}
