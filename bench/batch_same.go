package bench

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
)

// sameAskers is how many single requests are made at once.
const sameAskers = 8

// same asks for every RFC of one list again, each by itself: but for the id and the
// moment, each answer in the list has the bytes of the single one, its registro_sha256
// among them. All RFCs of the sample are asked for.
func (b *batchBench) same(ctx context.Context, report *Report) error {
	rfcs := b.rfcs(b.size.Large, b.listed)
	b.h.Progress("las mismas respuestas: una lista de %d y cada uno por su lado", len(rfcs))
	err := b.serve(ctx, func(server *child) error { return b.compare(ctx, server, rfcs) })
	if err != nil {
		return err
	}
	report.Detail["same"] = map[string]any{
		"what": "answers of one list, in full, with those of single requests: had any differed in more than verification_id and consultado, the bench had failed",
		"rfcs": len(rfcs), "listed": min(len(rfcs), len(b.listed)),
	}
	return nil
}

// pairedAnswer is what a list says of an RFC.
type pairedAnswer struct {
	rfc    string
	answer []byte
}

func (b *batchBench) compare(ctx context.Context, server *child, rfcs []string) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	answers := make(chan pairedAnswer, sameAskers)
	var askers sync.WaitGroup
	for range sameAskers {
		askers.Go(func() {
			for a := range answers {
				if ctx.Err() != nil {
					continue
				}
				single, err := singleAnswer(server.addr, b.key, "/v1/empresa/"+a.rfc)
				if err == nil && !bytes.Equal(withoutMoment(single), withoutMoment(a.answer)) {
					err = fmt.Errorf("%w: %s\nen la lista: %s\npor su lado:  %s", ErrOtherAnswer, a.rfc, a.answer, single)
				}
				if err != nil {
					cancel(err)
				}
			}
		})
	}
	err := b.answersOf(ctx, server, rfcs, answers)
	close(answers)
	askers.Wait()
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// answersOf sends what a new list is answered, in its order.
func (b *batchBench) answersOf(ctx context.Context, server *child, rfcs []string, to chan<- pairedAnswer) error {
	body, err := json.Marshal(rfcs)
	if err != nil {
		return err
	}
	resp, err := b.send(ctx, server, body, "completo")
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	lines := bufio.NewReaderSize(resp.Body, 1<<20)
	for n := -1; ; n++ {
		line, err := lines.ReadBytes('\n')
		switch {
		case errors.Is(err, io.EOF) && n == len(rfcs)+1:
			return nil
		case err != nil:
			return fmt.Errorf("después de %d renglones: %w", n, err)
		case n < 0 || n >= len(rfcs): // the batch, and its end
			continue
		}
		select {
		case to <- pairedAnswer{rfcs[n], bytes.TrimSuffix(line, []byte{'\n'})}:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// withoutMoment is an answer without what it has of its own: its id and its moment.
func withoutMoment(answer []byte) []byte {
	for _, name := range []string{`"verification_id":"`, `"consultado":"`} {
		before, value, found := bytes.Cut(answer, []byte(name))
		end := bytes.IndexByte(value, '"')
		if !found || end < 0 {
			return answer
		}
		answer = append(before[:len(before):len(before)], value[end:]...)
	}
	return answer
}
