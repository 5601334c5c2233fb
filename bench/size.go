package bench

import "time"

// Size is how much a bench measures.
type Size struct {
	Keys    int           // in the edition table beside a Go map
	Scale   float64       // of generated files: 1 is 3.3 million rows, the size of the real ones
	RFCs    int           // asked for in one repeat of classification and engine
	Growth  [2]int        // rows loaded: few and many
	Swaps   int           // editions that replace each other
	Records int           // there before requests are counted
	Repeats int           // of what is compared with a baseline over HTTP, or by a clock
	Window  time.Duration // of one repeat
}
