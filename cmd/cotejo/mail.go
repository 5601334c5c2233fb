package main

import (
	"bytes"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"os"

	"cotejo/mail"
)

// mailSettings are those of the mail server, beside its address.
var mailSettings = []string{"smtp_from", "smtp_user", "smtp_password_file"}

// mailConfig is how mail goes out, without the password.
func (c configuration) mailConfig() mail.Config {
	return mail.Config{Addr: c.get("smtp_addr"), From: c.get("smtp_from"), User: c.get("smtp_user"), TLS: mail.TLS(c.get("smtp_tls")), Now: now}
}

// checkMail refuses settings that could send nothing. The file of the password is
// read by those who send.
func (c configuration) checkMail() error {
	if c.get("smtp_addr") == "" {
		for _, key := range mailSettings {
			if c.get(key) != "" {
				return fmt.Errorf("%s: %s no sirve sin smtp_addr", c.origins[key], key)
			}
		}
		return nil
	}
	m := c.mailConfig()
	m.Password = c.get("smtp_password_file")
	if err := m.Check(); err != nil {
		return fmt.Errorf("%s: %w", c.origins["smtp_addr"], err)
	}
	return nil
}

// sender is nil when no mail server is configured. roots vouch for it in the place
// of the machine's; a test has its own.
func (c configuration) sender(roots *x509.CertPool) (*mail.Sender, error) {
	if c.get("smtp_addr") == "" {
		return nil, nil
	}
	m := c.mailConfig()
	m.Roots = roots
	if path := c.get("smtp_password_file"); path != "" {
		password, err := readPassword(path)
		if err != nil {
			return nil, err
		}
		m.Password = password
	}
	s, err := mail.NewSender(m)
	if err != nil {
		return nil, &exitError{exitConfig, err}
	}
	return s, nil
}

// maxPassword bounds the file of a password, in bytes.
const maxPassword = 1024

// readPassword reads the first and only line of a file that nobody else can read.
func readPassword(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", exitWith(exitConfig, "smtp_password_file: %w", err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err == nil && info.Mode().Perm()&0o077 != 0 {
		return "", exitWith(exitConfig, "%s lo pueden leer otros: chmod 600 %s", path, path)
	}
	text, errRead := io.ReadAll(io.LimitReader(file, maxPassword+2))
	if err = errors.Join(err, errRead); err != nil {
		return "", exitWith(exitConfig, "smtp_password_file: %w", err)
	}
	password := bytes.TrimRight(text, "\r\n")
	if len(password) == 0 || len(password) > maxPassword || bytes.ContainsAny(password, "\r\n\x00") {
		return "", exitWith(exitConfig, "smtp_password_file: %s debe tener una sola línea, de 1 a %d bytes", path, maxPassword)
	}
	return string(password), nil
}
