package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// loteRefusal is an answer that is no result.
type loteRefusal struct {
	status int
	code   string        // codigo
	said   string        // for a person
	lot    string        // that it is about, if it says
	after  time.Duration // Retry-After
	// nothing says that the service has no batch under the key of the request, and over
	// that repeating the command brings nothing.
	nothing, over bool
}

func (r *loteRefusal) Error() string { return r.said }

// Unwrap gives the exit code.
func (r *loteRefusal) Unwrap() error {
	code := exitFailed
	switch {
	case r.over:
		code = exitNotFound
	case r.status == 429 || r.status >= 500:
		code = exitTryAgain
	case r.status == 401 || r.status == 403:
		code = exitConfig
	case r.status != 402 && r.status != 409:
		code = exitUsage
	}
	return &exitError{code, errors.New(r.said)}
}

// passing reports whether the same request may be answered a little later, and how
// long the service asks to wait.
func (r *loteRefusal) passing() bool {
	return r.status == 429 || r.status == 408 || r.status >= 500 || r.code == "LLAVE_EN_CURSO" || r.code == "LOTE_EN_CURSO"
}

// lostOnTheWay tells what a network does from what repeating does not mend: a name or
// a certificate that is wrong, a disk here.
func lostOnTheWay(err error) bool {
	var lost *lostError
	var name *net.DNSError
	var certificate *tls.CertificateVerificationError
	var authority x509.UnknownAuthorityError
	if errors.As(err, &name) && name.IsNotFound || errors.As(err, &certificate) || errors.As(err, &authority) {
		return false
	}
	return errors.As(err, &lost)
}

// lostError is a request without a whole answer.
type lostError struct{ err error }

func (e *lostError) Error() string {
	return "el servicio no contesta, o se cortó la conexión: " + legible(briefly(e))
}

// Unwrap gives the exit code and the cause.
func (e *lostError) Unwrap() []error { return []error{&exitError{exitUnavailable, e.err}, e.err} }

// briefly is the innermost cause of what was lost.
func briefly(err error) string {
	var lost *lostError
	if !errors.As(err, &lost) {
		return err.Error()
	}
	err = lost.err
	var request *url.Error
	if errors.As(err, &request) {
		err = request.Err
	}
	return err.Error()
}

// legible is a text of the service as it may be shown: short, on one line, without
// control characters.
func legible(text string) string {
	n := 0
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if n++; n > 600 {
			return -1
		}
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 || r >= 0x2028 && r <= 0x202e || r >= 0x2066 && r <= 0x2069 {
			return ' '
		}
		return r
	}, text))
}

// lost tells a request that was given up from one that somebody else cut.
func lost(ctx context.Context, err error) error {
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errStalled):
		err = errStalled
	case ctx.Err() != nil:
		return cause
	}
	return &lostError{err}
}

// refusal reads an answer that is not 200.
func (c *loteClient) refusal(answer *http.Response, body io.Reader) error {
	r := &loteRefusal{status: answer.StatusCode, lot: answer.Header.Get("X-Lote"), after: retryAfter(answer.Header.Get("Retry-After"))}
	text, err := io.ReadAll(io.LimitReader(body, maxErrorBytes))
	var said struct {
		Code   string          `json:"codigo"`
		Title  string          `json:"title"`
		Help   string          `json:"ayuda"`
		Detail json.RawMessage `json:"detail"`
		ID     string          `json:"request_id"`
	}
	if err != nil && len(text) == 0 {
		return err
	}
	if location := answer.Header.Get("Location"); r.status >= 300 && r.status < 400 {
		r.said = fmt.Sprintf("el servicio está en otra dirección: use --url con ella (%s). La llave no se envió allí", legible(location))
		return r
	}
	if json.Unmarshal(text, &said) != nil || said.Code == "" {
		r.said = fmt.Sprintf("%s contestó %s, que no es de este servicio: revise --url", c.base.Redacted(), legible(answer.Status))
		return r
	}
	r.code = said.Code
	r.nothing = r.code == "SALDO_INSUFICIENTE"
	r.said = fmt.Sprintf("%s: %s", legible(said.Title), explain(said.Detail))
	if found := loteIn.Find(said.Detail); r.lot == "" && found != nil {
		r.lot = string(found)
	}
	if said.Help != "" {
		r.said += ". " + legible(said.Help)
	}
	if said.ID != "" && r.status >= 500 {
		r.said += " (request_id " + legible(said.ID) + ")"
	}
	return r
}

// explain turns the detail of an error answer into a text: it is one, or the object of
// an answer 402, or the list of one 422.
func explain(detail json.RawMessage) string {
	var text string
	if json.Unmarshal(detail, &text) == nil {
		return strings.TrimSuffix(legible(text), ".")
	}
	var funds struct {
		Error   string `json:"error"`
		Balance string `json:"saldo"`
		Wanted  int    `json:"consultas"`
		Pays    int    `json:"alcanza_para"`
	}
	if json.Unmarshal(detail, &funds) == nil {
		if funds.Wanted == 0 {
			return strings.TrimSuffix(legible(funds.Error), ".")
		}
		return fmt.Sprintf("usos y saldo (%s MXN) pagan %d de las %d consultas; no se consultó ni se cobró nada", legible(funds.Balance), funds.Pays, funds.Wanted)
	}
	var items []struct {
		Loc []any  `json:"loc"`
		Msg string `json:"msg"`
	}
	_ = json.Unmarshal(detail, &items) // what is no list either says nothing
	var all []string
	for i, item := range items {
		if i == 5 {
			all = append(all, fmt.Sprintf("y %d más", len(items)-i))
			break
		}
		at := ""
		if n := len(item.Loc); n > 1 {
			at = fmt.Sprintf("%v: ", item.Loc[n-1])
			if line, is := item.Loc[n-1].(float64); is {
				at = fmt.Sprintf("línea %.0f: ", line)
			}
		}
		all = append(all, legible(at+item.Msg))
	}
	return strings.Join(all, "; ")
}

// retryAfter reads the header: seconds, or a moment.
func retryAfter(text string) time.Duration {
	if n, err := strconv.Atoi(text); err == nil && n >= 0 {
		return time.Duration(min(n, 1e6)) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(0, at.Sub(now()))
	}
	return 0
}
