package operation

import (
	"context"
	"io"
)

// Stream is an answer with status 200 that is made while it is sent: too large to
// be held whole. What goes wrong before it begins is an error of Read; what goes
// wrong later must cut the transfer, so that no client takes a part for the whole.
type Stream struct {
	Type   string // Content-Type: application/json, or one of the operation's Media
	Name   string // of the file, for whoever saves it; ASCII letters, digits, '.', '_' and '-'
	Size   int64  // bytes; -1: not known beforehand
	SHA256 string // of what is sent, unpacked, in hexadecimal; "" when it is known only at its end

	// Write writes the answer to w, at most once. It returns soon after ctx ended or
	// w failed, with an error; a nil error says that the answer is whole. It is called
	// from another goroutine than Read, at the same time as nothing else of it.
	Write func(ctx context.Context, w io.Writer) error
	// Close lets go of what the answer holds: called once, after Write or, when nobody
	// wants the content, in its place. May be nil.
	Close func()
}

// Media is a content type of an operation's 200 answers beside the JSON of Output.
type Media struct {
	Type        string
	Description string // Spanish
}

// handOver gives the slot of the request to the stream, which gives it back when it
// ends.
func (s *Stream) handOver(leave func()) *Stream {
	handed, inner := *s, s.Close
	handed.Close = func() {
		defer leave()
		if inner != nil {
			inner()
		}
	}
	return &handed
}
