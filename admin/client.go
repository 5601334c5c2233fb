package admin

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"
)

// Call asks the server of a data directory to execute a command. It returns
// ErrNoServer when none listens, *Error when the command failed, and ErrLost,
// with the reason, when nobody can tell whether it was carried out.
func Call(ctx context.Context, dir, command string, args, result any, progress func(string)) error {
	raw, err := json.Marshal(args)
	if err != nil {
		return err
	}
	d, path, err := socketPath(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", path)
	if errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.ECONNREFUSED) {
		return ErrNoServer
	} else if err != nil {
		return err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Now()) })
	defer stop()
	lost := func(err error) error {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return fmt.Errorf("%w: %w", ErrLost, err)
	}
	if err := json.NewEncoder(conn).Encode(request{command, raw}); err != nil {
		return lost(err) // the part that went out may have been all of it
	}
	dec := json.NewDecoder(bufio.NewReader(conn))
	for {
		var r reply
		switch err := dec.Decode(&r); {
		case err != nil:
			return lost(err)
		case r.Error != nil:
			return r.Error
		case r.Result != nil:
			return json.Unmarshal(r.Result, result)
		default:
			progress(r.Progress)
		}
	}
}
