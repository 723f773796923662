package email

import (
	"crypto/x509"

	"github.com/chela-ai/chela/internal/core/channel"
)

// Trust makes a channel accept the certificates of a test server.
func Trust(c channel.Channel, roots *x509.CertPool) { c.(*bot).roots = roots }
