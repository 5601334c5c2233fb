package evidence

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"

	"cotejo/accounts"
	"cotejo/expedientes"
	"cotejo/operation"
)

// issue answers with a dossier. It is noted when this returns.
func (c Config) issue(ctx context.Context, call operation.Call) (_ operation.Response, err error) {
	p, err := period(call.Input, c.Now())
	if err != nil {
		return operation.Response{}, err
	}
	format, kind := expedientes.JSON, "application/json"
	if asked, _ := operation.Get[string](call.Input, "formato"); asked == expedientes.ZIP.String() {
		format, kind = expedientes.ZIP, "application/zip"
	}
	if call.Head {
		return operation.Response{Stream: &operation.Stream{Type: kind, Name: "expediente." + format.String(), Size: -1}}, nil
	}
	if c.Pipeline.Full != nil && c.Pipeline.Full() {
		return operation.Response{}, operation.ErrFull
	}
	book, who := c.Pipeline.Ledger, call.Principal
	org, err := c.Pipeline.Accounts.Organization(who.Org)
	if err != nil {
		return operation.Response{}, err
	}
	view, err := book.View(who.Account)
	if err != nil {
		return operation.Response{}, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, view.Close())
		}
	}()
	d := dossier{view: view, org: org, test: who.Mode != accounts.Live, span: p, moment: c.Now()}
	if d.head, err = view.Head(); err != nil {
		return operation.Response{}, err
	}
	if d.anchor, d.anchored = book.Anchored(who.Account); d.anchor.Seq > d.head.Seq {
		d.anchored = false // it was written since, and says nothing of this view
	}
	if d.id, err = book.NextID(ctx, expedientes.Prefix, d.moment); err != nil {
		return operation.Response{}, err
	}
	// Written after the view was opened and to the same place: once this is durable,
	// so is everything that the view shows.
	note := expedientes.Issue{Issued: expedientes.Issued{
		ID: d.id, Org: who.Org, Moment: d.moment, From: p.from.Compact(), To: p.to.Compact(), Format: format,
	}}
	if _, err = book.Do(ctx, who.Account, note); err != nil {
		return operation.Response{}, err
	}
	d.finish = func(ctx context.Context, sum [sha256.Size]byte) error {
		_, err := book.Do(ctx, who.Account, expedientes.Finish{Org: who.Org, ID: d.id, Sum: sum})
		return err
	}
	write := d.write
	if format == expedientes.ZIP {
		sources := c.sources(&who)
		write = func(ctx context.Context, w io.Writer) error { return d.writeArchive(ctx, w, sources) }
	}
	return operation.Response{Stream: &operation.Stream{
		Type: kind, Name: d.id.String() + "." + format.String(), Size: -1,
		Write: write,
		Close: func() { _ = view.Close() },
	}}, nil
}
