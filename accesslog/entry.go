package accesslog

import (
	"encoding/json"
	"errors"
	"net/netip"
	"strconv"
	"time"
)

// Entry is one request. Every text in it is a constant of the service or an id whose
// alphabet needs no escape in JSON (letters, digits, / { } _ -): nothing that a
// client wrote.
type Entry struct {
	At        time.Time
	RequestID []byte
	Method    string
	Route     string // template: /v1/empresa/{rfc}; "-" for none
	Status    int
	Took      time.Duration
	Bytes     int64      // of the answer's body that were sent
	Cut       bool       // the rest of it was not
	Client    netip.Addr // zero: unknown
	Org       []byte     // whose key it is; empty: nobody's, or an operator's
	Key       string     // lookup id of the key, never the key; "": no valid one
	Cost      int64      // centavos charged
	Lost      int        // lines lost before this one

	line []byte // room to compose it
}

// moment is the form of At in a line: of fixed length, so that text compares as time.
const moment = "2006-01-02T15:04:05.000Z"

const (
	atStart = len(`{"t":"`)
	atEnd   = atStart + len(moment)
)

// appendMoment appends a moment. The standard library takes a fifth of the time for
// a layout that it knows.
func appendMoment(b []byte, t time.Time) []byte {
	b = t.UTC().AppendFormat(b, time.RFC3339)
	ms := t.Nanosecond() / 1e6
	return append(b[:len(b)-1], '.', byte('0'+ms/100), byte('0'+ms/10%10), byte('0'+ms%10), 'Z')
}

// appendTo appends the line, without its end: «}» and a line feed.
func (e *Entry) appendTo(b []byte) []byte {
	b = append(b, `{"t":"`...)
	b = appendMoment(b, e.At)
	b = append(b, `","id":"`...)
	b = append(b, e.RequestID...)
	b = append(b, `","metodo":"`...)
	b = append(b, e.Method...)
	b = append(b, `","ruta":"`...)
	b = append(b, e.Route...)
	b = append(b, `","status":`...)
	b = strconv.AppendInt(b, int64(e.Status), 10)
	b = append(b, `,"us":`...)
	b = strconv.AppendInt(b, e.Took.Microseconds(), 10)
	b = append(b, `,"bytes":`...)
	b = strconv.AppendInt(b, e.Bytes, 10)
	if e.Cut {
		b = append(b, `,"cortada":true`...)
	}
	if e.Client.IsValid() {
		b = append(b, `,"direccion":"`...)
		b = e.Client.AppendTo(b)
		b = append(b, '"')
	}
	if len(e.Org) > 0 {
		b = append(b, `,"organizacion":"`...)
		b = append(b, e.Org...)
		b = append(b, '"')
	}
	if e.Key != "" {
		b = append(b, `,"llave":"`...)
		b = append(b, e.Key...)
		b = append(b, '"')
	}
	if e.Cost > 0 {
		b = append(b, `,"centavos":`...)
		b = strconv.AppendInt(b, e.Cost, 10)
	}
	return b
}

var errLine = errors.New("accesslog: renglón ilegible")

// parse reads a line, with its «}» and without the line feed.
func (e *Entry) parse(line []byte) error {
	var v struct {
		At     string     `json:"t"`
		ID     string     `json:"id"`
		Method string     `json:"metodo"`
		Route  string     `json:"ruta"`
		Status int        `json:"status"`
		Micros int64      `json:"us"`
		Bytes  int64      `json:"bytes"`
		Cut    bool       `json:"cortada"`
		Client netip.Addr `json:"direccion"`
		Org    string     `json:"organizacion"`
		Key    string     `json:"llave"`
		Cost   int64      `json:"centavos"`
		Lost   int        `json:"perdidas"`
	}
	if err := json.Unmarshal(line, &v); err != nil {
		return errLine
	}
	at, err := time.Parse(moment, v.At)
	if err != nil {
		return errLine
	}
	*e = Entry{
		At: at, RequestID: []byte(v.ID), Method: v.Method, Route: v.Route, Status: v.Status, Took: time.Duration(v.Micros) * time.Microsecond,
		Bytes: v.Bytes, Cut: v.Cut, Client: v.Client, Org: []byte(v.Org), Key: v.Key, Cost: v.Cost, Lost: v.Lost,
	}
	return nil
}
