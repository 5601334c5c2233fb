// Package mail hands plain-text messages to an SMTP server.
//
// It promises that a message is one message: nothing of an address, subject or
// text can become a header, a recipient or a command. A password is never sent
// without TLS; no error names a recipient, a password or a line of the text. It
// keeps nothing on a disk: what waits in an Outbox ends with the process.
//
// Start reading at Sender.Send, then Outbox.
package mail

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	stdmail "net/mail"
	"net/netip"
	"net/textproto"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	gomail "github.com/wneessen/go-mail"
)

// TLS says how the connection is protected.
type TLS string

const (
	// StartTLS upgrades the connection and sends nothing when the server cannot.
	StartTLS TLS = "starttls"
	// Implicit speaks TLS from the first byte, as on port 465.
	Implicit TLS = "implicit"
	// None protects nothing: only to this machine, and without a password.
	None TLS = "none"
)

// Config says through which server messages go, and from whom.
type Config struct {
	Addr           string // HOST:PORT
	From           string // address alone, without a name
	User, Password string // both or none
	TLS            TLS
	Roots          *x509.CertPool   // nil: those of the machine
	Now            func() time.Time // for the header Date
}

// Check refuses what could not send, in Spanish, naming the setting.
func (c *Config) Check() error {
	host, port, err := net.SplitHostPort(c.Addr)
	if n, bad := strconv.ParseUint(port, 10, 16); err != nil || bad != nil || n == 0 || host == "" {
		return errors.New("smtp_addr es HOST:PUERTO, como correo.ejemplo.mx:587")
	}
	if err := checkAddress(c.From); err != nil {
		return errors.New("smtp_from es una dirección sola, como avisos@ejemplo.mx")
	}
	if (c.User == "") != (c.Password == "") {
		return errors.New("smtp_user y smtp_password_file van juntos, o ninguno")
	}
	switch c.TLS {
	case StartTLS, Implicit:
	case None:
		if !loopback(host) {
			return errors.New("smtp_tls: none solo vale hacia esta misma máquina (127.0.0.1, ::1, localhost); use starttls o implicit")
		}
		if c.User != "" {
			return errors.New("smtp_tls: none no manda contraseñas; quite smtp_user o use starttls o implicit")
		}
	default:
		return errors.New("smtp_tls es starttls, implicit o none")
	}
	return nil
}

func loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

// Message is one plain text for one recipient.
type Message struct {
	To      string // address alone
	Subject string
	Text    string // lines end in \n
}

// Limits of a message.
const (
	maxAddress = 254
	maxSubject = 200
	maxText    = 16 << 10
)

// Check refuses a message that could be read as more than one.
func (m *Message) Check() error {
	if err := checkAddress(m.To); err != nil {
		return err
	}
	if m.Subject == "" || len(m.Subject) > maxSubject || !plain(m.Subject, "") {
		return errors.New("mail: el asunto está vacío, es largo o tiene caracteres de control")
	}
	if m.Text == "" || len(m.Text) > maxText || !plain(m.Text, "\n") {
		return errors.New("mail: el texto está vacío, es largo o tiene caracteres de control")
	}
	return nil
}

// checkAddress accepts an address that is written in one way only.
func checkAddress(s string) error {
	a, err := stdmail.ParseAddress(s)
	at := strings.LastIndexByte(s, '@')
	if err != nil || a.Address != s || a.Name != "" || len(s) > maxAddress || !plain(s, "") || !strings.Contains(s[at+1:], ".") || strings.ContainsAny(s, "[]\"") {
		return errors.New("mail: la dirección no es una dirección sola")
	}
	return nil
}

// plain reports that a text is UTF-8 without control characters, but for those
// allowed.
func plain(s, allowed string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool {
		return (unicode.IsControl(r) || r == '\u2028' || r == '\u2029') && !strings.ContainsRune(allowed, r)
	})
}

// Error is a message that was not sent. It says at which step and what the server's
// code was, never what the server wrote: that may repeat the address.
type Error struct {
	Step string // Spanish
	Code int    // of SMTP, 0 when the server did not answer one
	// Refused: the server took the connection and refuses this recipient or this
	// message for good. Anything else may go better later.
	Refused bool
	cause   error // of the connection; nil when the server answered
}

func (e *Error) Error() string {
	text := "mail: " + e.Step
	if e.Code != 0 {
		text += ": el servidor respondió " + strconv.Itoa(e.Code)
	}
	if e.cause != nil {
		text += ": " + e.cause.Error()
	}
	return text
}

// Sender sends messages through one server. It is safe for concurrent use.
type Sender struct {
	config  Config
	host    string
	port    int
	timeout time.Duration
}

// sendTimeout bounds a connection: a server that answers does so in a few seconds.
const sendTimeout = 20 * time.Second

// NewSender returns the error of Config.Check. It connects to nothing yet.
func NewSender(c Config) (*Sender, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	host, port, _ := net.SplitHostPort(c.Addr)
	n, _ := strconv.Atoi(port)
	return &Sender{config: c, host: host, port: n, timeout: sendTimeout}, nil
}

// Send returns nil once the server has taken the message over. It gives up with
// ctx, and after 20 seconds. The error is Message.Check's or an *Error.
func (s *Sender) Send(ctx context.Context, m Message) error {
	if err := m.Check(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	message, err := s.compose(m)
	if err != nil {
		return err
	}
	client, err := s.client(ctx)
	if err != nil {
		return err
	}
	err = client.DialAndSendWithContext(ctx, message)
	if message.IsDelivered() { // what failed came after the server had taken it
		return nil
	}
	return failure(ctx, err)
}

// Probe connects as Send does, with TLS and password, and sends nothing. The error is
// an *Error.
func (s *Sender) Probe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	client, err := s.client(ctx)
	if err != nil {
		return err
	}
	connected, err := client.DialToSMTPClientWithContext(ctx)
	if err != nil {
		return failure(ctx, err)
	}
	_ = client.CloseWithSMTPClient(connected)
	return nil
}

func (s *Sender) compose(m Message) (*gomail.Msg, error) {
	message := gomail.NewMsg(gomail.WithCharset(gomail.CharsetUTF8), gomail.WithEncoding(gomail.EncodingQP), gomail.WithNoDefaultUserAgent())
	if err := errors.Join(message.From(s.config.From), message.To(m.To)); err != nil {
		return nil, errors.New("mail: la dirección no es una dirección sola")
	}
	message.Subject(m.Subject)
	message.SetDateWithValue(s.config.Now())
	// The library would name this machine behind the @; that is nobody's business.
	message.SetMessageIDWithValue(rand.Text() + "@" + s.domain())
	message.SetGenHeader("Auto-Submitted", "auto-generated") // RFC 3834: nobody is to answer automatically
	message.SetBodyString(gomail.TypeTextPlain, strings.ReplaceAll(m.Text, "\n", "\r\n"))
	return message, nil
}

func (s *Sender) domain() string { return s.config.From[strings.LastIndexByte(s.config.From, '@')+1:] }

func (s *Sender) client(ctx context.Context) (*gomail.Client, error) {
	tlsConfig := &tls.Config{ServerName: s.host, MinVersion: tls.VersionTLS12, RootCAs: s.config.Roots}
	options := []gomail.Option{
		gomail.WithPort(s.port), gomail.WithTimeout(s.timeout), gomail.WithHELO(s.domain()), gomail.WithTLSConfig(tlsConfig),
		gomail.WithDialContextFunc(s.dial(ctx, tlsConfig)),
	}
	switch s.config.TLS {
	case StartTLS:
		options = append(options, gomail.WithTLSPolicy(gomail.TLSMandatory))
	case Implicit:
		options = append(options, gomail.WithSSL())
	default:
		options = append(options, gomail.WithTLSPolicy(gomail.NoTLS))
	}
	if s.config.User != "" {
		options = append(options, gomail.WithUsername(s.config.User), gomail.WithPassword(s.config.Password),
			gomail.WithOpportunisticSMTPAuth(gomail.SMTPAuthSCRAMSHA256, gomail.SMTPAuthPlain, gomail.SMTPAuthLogin))
	}
	return gomail.NewClient(s.host, options...)
}

// dial connects; the connection ends with ctx, whatever it waits for. The library
// looks at ctx only while it connects.
func (s *Sender) dial(ctx context.Context, tlsConfig *tls.Config) gomail.DialContextFunc {
	return func(dialing context.Context, network, address string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(dialing, network, address)
		if err != nil {
			return nil, err
		}
		context.AfterFunc(ctx, func() { _ = conn.Close() })
		if s.config.TLS != Implicit {
			return conn, nil
		}
		secured := tls.Client(conn, tlsConfig)
		if err := secured.HandshakeContext(dialing); err != nil {
			return nil, errors.Join(err, conn.Close())
		}
		return secured, nil
	}
}

// steps name what a SendError stopped at.
var steps = map[gomail.SendErrReason]string{
	gomail.ErrSMTPMailFrom:  "el servidor no acepta el remitente",
	gomail.ErrSMTPRcptTo:    "el servidor no acepta el destinatario",
	gomail.ErrSMTPData:      "el servidor no acepta el mensaje",
	gomail.ErrSMTPDataClose: "el servidor no acepta el mensaje",
	gomail.ErrWriteContent:  "se cortó el envío",
}

// failure turns the library's error, whose text may hold the address, into ours.
func failure(ctx context.Context, err error) error {
	var answered *textproto.Error
	var send *gomail.SendError
	switch {
	case ctx.Err() != nil:
		return &Error{Step: "el servidor no terminó a tiempo", cause: ctx.Err()}
	case errors.As(err, &send):
		step, ok := steps[send.Reason]
		if !ok {
			step = "el envío no terminó"
		}
		permanent := send.ErrorCode() >= 500 && (send.Reason == gomail.ErrSMTPRcptTo || send.Reason == gomail.ErrSMTPDataClose)
		return &Error{Step: step, Code: send.ErrorCode(), Refused: permanent}
	case errors.As(err, &answered):
		return &Error{Step: "el servidor no acepta la conexión o la cuenta", Code: answered.Code}
	}
	return &Error{Step: "no se pudo conectar con el servidor", cause: connection(err)}
}

// connection keeps of an error what is about the network or the certificate.
func connection(err error) error {
	var network *net.OpError
	var unknown x509.UnknownAuthorityError
	var host x509.HostnameError
	var invalid x509.CertificateInvalidError
	switch {
	case errors.As(err, &network):
		return network
	case errors.As(err, &unknown):
		return unknown
	case errors.As(err, &host):
		return host
	case errors.As(err, &invalid):
		return invalid
	case strings.Contains(err.Error(), "STARTTLS"):
		return errors.New("no ofrece STARTTLS; use smtp_tls: implicit o un servidor que cifre")
	case strings.Contains(err.Error(), "AUTH"):
		return errors.New("no ofrece una forma de autenticarse que se conozca")
	}
	return fmt.Errorf("%T", err)
}
