package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"cotejo/civil"
	"cotejo/ingest"
)

// cotejo lote is a client of POST /v1/empresa/lote: it speaks HTTP and opens no data
// directory. What it promises is that one output is one batch, charged once, however
// often the command is run until the output is there (lote_mark.go), and that a file
// of that name is whole (lote_whole.go). How it speaks: lote_client.go.

type loteCmd struct {
	List        string `arg:"" name:"lista" help:"Archivo con los RFC: .csv o .txt (columna «rfc», o la primera), .json o .ndjson."`
	Out         string `help:"Archivo de resultados, que no debe existir. Su extensión dice el formato." placeholder:"ARCHIVO"`
	Format      string `name:"formato" enum:",json,ndjson,csv" default:"" help:"json, ndjson o csv, si la extensión de --out no lo dice."`
	Detail      string `name:"detalle" enum:"resumen,completo" default:"completo" help:"resumen: un renglón por RFC; completo: la respuesta entera."`
	Sancionados bool   `default:"true" negatable:"" help:"Incluye el directorio de proveedores sancionados."`
	EnFecha     string `help:"Pregunta además por un día pasado, del 1900-01-01 a hoy." placeholder:"AAAA-MM-DD"`
	URL         string `name:"url" help:"Dirección del servicio, o COTEJO_URL; sin ella, la de esta máquina." placeholder:"URL"`
	KeyFile     string `name:"key-file" help:"Archivo con la llave svc_live_… o svc_test_…, que solo lee su dueño; sin él, COTEJO_KEY." placeholder:"ARCHIVO"`
	Simulate    bool   `name:"simular" help:"Solo cotiza: nada se consulta ni se cobra."`
	Yes         bool   `name:"si" help:"Acepta la cotización sin preguntar."`
}

// loteFormats are the formats by the extension of their files.
var loteFormats = map[string]struct {
	media string
	whole func() loteReader
}{
	"json":   {"application/json", func() loteReader { return new(jsonReader) }},
	"ndjson": {"application/x-ndjson", func() loteReader { return new(linesReader) }},
	"csv":    {"text/csv", func() loteReader { return new(csvReader) }},
}

// maxListBytes is what the service reads at most.
const maxListBytes = 8 << 20

// loteReply is the result of the command.
type loteReply struct {
	Lot      string  `json:"lote_id"`
	State    string  `json:"estado"`
	Out      string  `json:"salida"`
	Format   string  `json:"formato"`
	Results  int     `json:"resultados"`
	Repeated int     `json:"duplicados"`
	Refused  int     `json:"invalidos"`
	Cost     string  `json:"costo,omitempty"` // of the batch, whoever paid; empty: the service did not say
	Uses     int     `json:"usos_individuales"`
	Bytes    int64   `json:"bytes"`
	SHA256   string  `json:"sha256"`
	Attached bool    `json:"retomado"` // an earlier run had sent it
	Seconds  float64 `json:"segundos"`
}

// Run sends the list, after it showed what that will cost.
func (c *loteCmd) Run(a *app) error {
	client, err := c.client(a)
	if err != nil {
		return err
	}
	defer client.progress.Done()
	list, err := c.list()
	if err != nil {
		return err
	}
	if c.Simulate {
		quote, err := client.quote(a.ctx, list)
		if err != nil {
			return err
		}
		client.progress.Done()
		return a.print(quote.Raw, func() { quote.print(a.stdout) })
	}
	format, err := c.format()
	if err != nil {
		return err
	}
	out, err := openLoteOutput(c.Out)
	if err != nil {
		return err
	}
	reply, err := c.deliver(a, client, list, format, out)
	err = errors.Join(err, out.close())
	client.progress.Done()
	if reply.Lot == "" || reply.SHA256 == "" {
		return err
	}
	reply.Out, reply.Format = out.path, format
	if reply.State == loteStopped {
		reply.Out = out.stopped
	}
	return errors.Join(a.print(reply, func() { reply.print(a.stdout) }), err)
}

func (r *loteReply) print(w io.Writer) {
	sign := "✓"
	if r.State == loteStopped {
		sign = "!"
	}
	fmt.Fprintf(w, "%s %s en %s: %d resultados, %d duplicados, %d no válidos; %.1f MB, %.1f s\n",
		sign, r.Lot, r.Out, r.Results, r.Repeated, r.Refused, float64(r.Bytes)/1e6, r.Seconds)
	if r.Cost != "" {
		fmt.Fprintf(w, "cobrado por el lote: %s MXN y %d usos individuales\n", r.Cost, r.Uses)
	}
	fmt.Fprintf(w, "sha256 %s\n", r.SHA256)
}

// deliver brings the results of the list into the output. Without an error the output
// is there and no mark of it is left.
func (c *loteCmd) deliver(a *app, client *loteClient, list *loteList, format string, out *loteOutput) (reply loteReply, err error) {
	started := time.Now()
	mark, attached, err := c.mark(a, client, list, out)
	if err != nil {
		return reply, err
	}
	if mark.Sum != "" { // an earlier run ended between giving the name and removing the mark
		n, sum, err := hashFile(out.path)
		if err != nil || sum != mark.Sum {
			return reply, errors.Join(err, exitWith(exitUsage, "%s ya existe y no es lo que se recibió del lote %s: muévalo y repita la misma orden, que no cobra otra vez", out.path, mark.Lot))
		}
		reply = loteReply{Lot: mark.Lot, State: loteDone, Results: mark.Quote.Units, Bytes: n, SHA256: sum}
	} else {
		order := loteOrder{list: list, mark: mark, media: loteFormats[format].media, reader: loteFormats[format].whole}
		if reply, err = client.receive(a.ctx, &order, out); err != nil {
			return reply, c.unfinished(err, out, mark)
		}
	}
	reply.Repeated, reply.Refused, reply.Attached, reply.Seconds = mark.Quote.Repeated, mark.Quote.Refused, attached, time.Since(started).Seconds()
	if job, err := client.state(a.ctx, reply.Lot); err == nil {
		reply.Cost, reply.Uses = job.Cost, job.Uses
	} // else the results are whole all the same
	if reply.State == loteStopped {
		if err := out.publishStopped(); err != nil {
			return reply, err
		}
		return reply, exitWith(exitPartial, "el servicio detuvo el lote %s después de %d de %d consultas, que quedaron cobradas y están en %s. %s",
			reply.Lot, reply.Results, mark.Quote.Units, out.stopped, "Envíe en otra lista las que faltan")
	}
	return reply, out.publish(mark, reply.SHA256)
}

// mark finds what an earlier run left, or quotes, asks and leaves one: from then on a
// repeated run is the same batch.
func (c *loteCmd) mark(a *app, client *loteClient, list *loteList, out *loteOutput) (mark *loteMark, attached bool, err error) {
	mark, err = out.read()
	if err != nil {
		return nil, false, err
	}
	if err := out.free(mark); err != nil {
		return nil, false, err
	}
	if mark != nil && mark.Content != list.content {
		return nil, false, exitWith(exitUsage, "%s es de otra lista o de otros parámetros%s: repita la orden de entonces, que no cobra otra vez, o use otro --out",
			out.marked, mark.about())
	}
	if mark != nil && mark.Service == client.base.String() && mark.Mode == client.mode {
		a.tell("se retoma el lote%s: si el servicio ya lo tiene, no se cobra otra vez; si no, se cobra lo que se aceptó, %s MXN", mark.about(), mark.Quote.Cost)
		return mark, true, nil
	}
	quote, err := client.quote(a.ctx, list)
	if err != nil {
		return nil, false, err
	}
	client.progress.Done()
	quote.print(a.stderr)
	if !quote.Enough {
		return nil, false, exitWith(exitFailed, "el saldo no alcanza: usos y saldo pagan %d de las %d consultas. No se consultó ni se cobró nada; abone saldo, o envíe una lista más corta",
			quote.Pays, quote.Units)
	}
	if err := c.accept(a, quote); err != nil {
		return nil, false, err
	}
	if attached = mark != nil; !attached {
		mark = newLoteMark(list)
	}
	mark.Service, mark.Mode, mark.Quote = client.base.String(), client.mode, *quote
	return mark, attached, out.write(mark)
}

// tell writes a line for a person.
func (a *app) tell(format string, args ...any) { fmt.Fprintf(a.stderr, format+"\n", args...) }

// accept asks whether the price is accepted.
func (c *loteCmd) accept(a *app, q *loteQuote) error {
	if c.Yes {
		return nil
	}
	from := typed()
	if from == nil {
		return exitWith(exitUsage, "sin terminal no se pregunta: repita con --si para aceptar %s MXN y %d usos individuales. No se consultó ni se cobró nada", q.Cost, q.Uses)
	}
	fmt.Fprintf(a.stderr, "¿Consultar %d RFC por %s MXN y %d usos individuales? [s/N] ", q.Units, q.Cost, q.Uses)
	said := make(chan string, 1)
	go func() { // it may read until the process ends
		line, _ := bufio.NewReaderSize(from, 256).ReadString('\n')
		said <- line
	}()
	select {
	case line := <-said:
		if line = strings.ToLower(strings.TrimSpace(line)); line == "s" || line == "si" || line == "sí" {
			return nil
		}
		return exitWith(exitInterrupted, "no se aceptó: no se consultó ni se cobró nada")
	case <-a.ctx.Done():
		return a.ctx.Err()
	}
}

// typed is where a person types, nil when nobody is there; a test replaces it.
var typed = func() io.Reader {
	info, err := os.Stdin.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return nil
	}
	return os.Stdin
}

// unfinished says what a run that failed leaves, and takes the mark away when the
// service has certainly no batch of it.
func (c *loteCmd) unfinished(err error, out *loteOutput, mark *loteMark) error {
	var refused *loteRefusal
	if errors.As(err, &refused) && refused.nothing {
		return errors.Join(err, out.forget())
	}
	if refused != nil && refused.over {
		return err
	}
	if errors.Is(err, context.Canceled) {
		err = fmt.Errorf("interrumpido: %w", err)
	}
	return fmt.Errorf("%w\nEl lote%s puede seguir en el servicio: repita la misma orden antes de 7 días para recibir sus resultados sin otro cobro (%s)", err, mark.about(), out.marked)
}

// format is what the results are asked as.
func (c *loteCmd) format() (string, error) {
	if c.Out == "" {
		return "", exitWith(exitUsage, "diga dónde quedan los resultados: --out resultados.ndjson")
	}
	if c.Format != "" {
		return c.Format, nil
	}
	extension := strings.ToLower(strings.TrimPrefix(filepath.Ext(c.Out), "."))
	if _, known := loteFormats[extension]; !known {
		return "", exitWith(exitUsage, "--out %s: la extensión no dice el formato; agregue --formato json, ndjson o csv", c.Out)
	}
	return extension, nil
}

// list reads what is sent.
func (c *loteCmd) list() (*loteList, error) {
	types := map[string]string{
		".json": "application/json", ".ndjson": "application/x-ndjson", ".jsonl": "application/x-ndjson",
		".csv": "text/csv", ".txt": "text/csv", ".tsv": "text/csv",
	}
	media, known := types[strings.ToLower(filepath.Ext(c.List))]
	if !known {
		return nil, exitWith(exitUsage, "%s: la extensión debe decir qué es la lista: .csv o .txt, .json, .ndjson", c.List)
	}
	f, err := os.Open(c.List)
	if err != nil {
		return nil, exitWith(exitUsage, "no se puede leer la lista: %w", err)
	}
	defer f.Close()
	body, err := io.ReadAll(io.LimitReader(f, maxListBytes+1))
	if err != nil {
		return nil, fmt.Errorf("no se puede leer la lista: %w", err)
	}
	if len(body) > maxListBytes {
		return nil, exitWith(exitUsage, "%s tiene más de 8 MiB, lo más que recibe el servicio: divídala", c.List)
	}
	query := url.Values{"detalle": {c.Detail}, "sancionados": {strconv.FormatBool(c.Sancionados)}}
	if c.EnFecha != "" {
		if _, err := civil.Parse(c.EnFecha); err != nil {
			return nil, exitWith(exitUsage, "--en-fecha: %w", err)
		}
		query.Set("en_fecha", c.EnFecha)
	}
	return newLoteList(media, query, body), nil
}

// client reads where the service is and with which key it is asked.
func (c *loteCmd) client(a *app) (*loteClient, error) {
	set := map[string]string{}
	for _, v := range environment() {
		name, value, _ := strings.Cut(v, "=")
		set[name] = value
	}
	base, err := parseServiceURL(cmp.Or(c.URL, set["COTEJO_URL"], "http://"+a.config.get("addr")))
	if err != nil {
		return nil, err
	}
	key := set["COTEJO_KEY"]
	if c.KeyFile != "" {
		text, err := ownersFile(c.KeyFile)
		if err != nil {
			return nil, exitWith(exitConfig, "--key-file: %w", err)
		}
		key = string(text)
	}
	if key = strings.TrimSpace(key); key == "" {
		return nil, exitWith(exitConfig, "falta la llave: --key-file ARCHIVO, o la variable COTEJO_KEY")
	}
	if strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }) || len(key) > 256 {
		return nil, exitWith(exitConfig, "lo que se dio como llave no es una llave: se espera svc_live_… o svc_test_…")
	}
	mode := "test"
	if strings.HasPrefix(key, "svc_live_") {
		mode = "live"
	}
	if base.Scheme == "http" && !isLoopback(base.Hostname()) {
		a.tell("aviso: %s no cifra: quien esté en el camino puede leer la llave y los resultados; use https", base.Redacted())
	}
	return &loteClient{
		base: base, key: key, mode: mode, wait: pause, stall: loteStall, progress: ingest.NewProgress(a.stderr),
		http: &http.Client{Transport: newLoteTransport(), CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
	}, nil
}
