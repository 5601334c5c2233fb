package ingest

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// ErrUnavailable says that the server did not give the file: nothing is known
// about the source that was not known before.
var ErrUnavailable = errors.New("la fuente no está disponible")

// failure is why an attempt gave no file.
type failure struct {
	what   string        // happened, in Spanish; told to everyone
	advice string        // what to do; "": usualAdvice
	again  bool          // the next attempt may go better
	after  time.Duration // that the server asked to wait
	gone   bool          // there is no such file there
}

const (
	usualAdvice = "intente más tarde o cargue el archivo con --file"
	proxyAdvice = "revise fuentes.{source}.proxy, o HTTPS_PROXY en el entorno"
)

func (f *failure) Error() string { return f.what }

// unavailable is the error of a download that was given up after some attempts.
func (f *failure) unavailable(address string, attempts int) error {
	tries := ""
	if attempts > 1 {
		tries = fmt.Sprintf(" (%d intentos)", attempts)
	}
	advice := f.advice
	if advice == "" {
		advice = usualAdvice
	}
	return fmt.Errorf("%w: %s: %w%s; %s", ErrUnavailable, address, f, tries, advice)
}

func late(limit time.Duration) error {
	return &failure{what: fmt.Sprintf("no terminó en %v", limit), again: true}
}

// early is for a body that ended before its stated length, 0 when it stated none.
func early(got, total int64) error {
	what := fmt.Sprintf("cortó la descarga: llegaron %d bytes", got)
	if total > 0 {
		what = fmt.Sprintf("cortó la descarga: llegaron %d de %d bytes", got, total)
	}
	return &failure{what: what, again: true}
}

// tunnelled looks at what a proxy answers when it is asked for a way to a server
// over HTTPS. Its words are its own: only the number is believed.
func tunnelled(_ context.Context, _ *url.URL, _ *http.Request, r *http.Response) error {
	if r.StatusCode == http.StatusOK {
		return nil
	}
	return &failure{
		what:   strings.TrimSpace(fmt.Sprintf("el proxy respondió %d %s", r.StatusCode, http.StatusText(r.StatusCode))),
		advice: proxyAdvice, again: r.StatusCode >= 500,
	}
}

func refusedRedirect(what string) error { return &failure{what: what} }

// mishaps is what the network does to a request and whether the next attempt may
// go better; the first that fits counts, and what fits none may. {source} and
// {error} stand for what they say.
var mishaps = []struct {
	fits   func(error) bool
	again  bool
	what   string
	advice string
}{
	{isOp("proxyconnect", "socks connect"), true, "no se pudo conectar con el proxy", proxyAdvice},
	{isA[*net.DNSError], true, "el nombre del servidor no se resuelve (DNS)", "revise la red y el DNS de este equipo, o cargue el archivo con --file"},
	{isA[x509.UnknownAuthorityError], false, "su certificado no se puede comprobar: lo firma una autoridad desconocida, o el servidor manda la cadena incompleta",
		"guarde en un archivo PEM el certificado intermedio que falta e indíquelo en fuentes.{source}.ca_file"},
	{isA[*tls.CertificateVerificationError], false, "su certificado no vale ({error})", "revise el reloj de este equipo; si está bien, " + usualAdvice},
	{is(syscall.ECONNREFUSED), true, "rechazó la conexión", ""},
	{timedOut, true, "no respondió a tiempo", ""},
	{brokeOff, true, "cortó la conexión", ""},
	{func(error) bool { return true }, true, "{error}", ""},
}

func is(target error) func(error) bool { return func(err error) bool { return errors.Is(err, target) } }

func isA[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

func isOp(ops ...string) func(error) bool {
	return func(err error) bool {
		e, ok := errors.AsType[*net.OpError](err)
		return ok && slices.Contains(ops, e.Op)
	}
}

func timedOut(err error) bool {
	e, ok := errors.AsType[net.Error](err)
	return ok && e.Timeout()
}

func brokeOff(err error) bool {
	for _, target := range []error{syscall.ECONNRESET, syscall.EPIPE, io.EOF, io.ErrUnexpectedEOF} {
		if errors.Is(err, target) {
			return true
		}
	}
	return false
}

// mishap finds a transport error in the table.
func (d *downloader) mishap(err error) error {
	if f, ok := errors.AsType[*failure](err); ok { // of sameHost or tunnelled
		return &failure{what: f.what, advice: d.tell(f.advice, nil), again: f.again}
	}
	// The message names the address already.
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err
	}
	for _, m := range mishaps {
		if m.fits(err) {
			return &failure{what: d.tell(m.what, err), advice: d.tell(m.advice, err), again: m.again}
		}
	}
	panic("unreachable: the last mishap fits every error")
}

// refusals are the answers that bring no file. What is not listed is not asked again.
var refusals = []struct {
	from, to int // status
	again    bool
	gone     bool
	advice   string
}{
	{http.StatusRequestTimeout, http.StatusRequestTimeout, true, false, ""},
	{http.StatusTooManyRequests, http.StatusTooManyRequests, true, false, ""},
	{500, 599, true, false, ""},
	// A guard that refuses us refuses more the more we ask.
	{http.StatusForbidden, http.StatusForbidden, false, false, "si sigue así, salga por otra red con fuentes.{source}.proxy o cargue el archivo con --file"},
	{http.StatusProxyAuthRequired, http.StatusProxyAuthRequired, false, false, proxyAdvice},
	{http.StatusNotFound, http.StatusNotFound, false, true, "busque el archivo en {page} y cárguelo con --file"},
	{http.StatusGone, http.StatusGone, false, true, "busque el archivo en {page} y cárguelo con --file"},
}

// refused is the failure of an answer other than 200.
func (d *downloader) refused(r *http.Response) error {
	f := &failure{what: strings.TrimSpace(fmt.Sprintf("respondió %d %s", r.StatusCode, http.StatusText(r.StatusCode))), after: retryAfter(r.Header)}
	for _, row := range refusals {
		if row.from <= r.StatusCode && r.StatusCode <= row.to {
			f.again, f.gone, f.advice = row.again, row.gone, d.tell(row.advice, nil)
		}
	}
	if d.token != "" && slices.Contains([]int{http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden}, r.StatusCode) {
		f.advice = "revise que el token de " + d.tokenSetting + " sea válido y no esté bloqueado"
	}
	if f.again && f.after > d.longest {
		f.what += fmt.Sprintf(" y pide esperar %v", f.after)
		f.again = false
	}
	return f
}

// maxSaid bounds what is repeated of an error (bytes): it may quote a server.
const maxSaid = 300

func (d *downloader) tell(text string, err error) string {
	said := ""
	if err != nil {
		said = cut(printable(err.Error()), maxSaid)
	}
	return strings.NewReplacer("{source}", d.source, "{page}", cmp.Or(d.page, indexPage), "{error}", said).Replace(text)
}

// retryAfter is how long a server asks to wait, 0 when it does not. A moment is
// taken against the server's own clock.
func retryAfter(h http.Header) time.Duration {
	text := h.Get("Retry-After")
	if seconds, err := strconv.ParseUint(text, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second
	}
	until, err := http.ParseTime(text)
	if err != nil {
		return 0
	}
	from, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		return 0
	}
	return max(0, until.Sub(from))
}

// pause is how long to wait after attempt n, from 1: at random up to a bound
// that doubles, so that many who were refused together do not come back
// together; at least what the server asked for.
func (d *downloader) pause(n int, f *failure) time.Duration {
	most := d.longest
	if n < 16 {
		most = min(most, d.backoff<<(n-1))
	}
	return max(d.jitter(most), f.after)
}

func fullJitter(most time.Duration) time.Duration { return rand.N(max(most, 1)) }

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}
