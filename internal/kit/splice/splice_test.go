package splice_test

import (
	"io"
	"net"
	"strings"
	"testing"

	"github.com/chela-ai/chela/internal/kit/splice"
)

// pair returns the two ends of a TCP connection.
func pair(t *testing.T) (a, b net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if a, err = net.Dial("tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if b, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close(); b.Close() })
	return a, b
}

func TestBoth(t *testing.T) {
	client, left := pair(t)
	right, server := pair(t)
	done := make(chan struct{})
	go func() {
		defer close(done)
		splice.Both(left, io.MultiReader(strings.NewReader("early "), left), right)
	}()
	if _, err := io.WriteString(client, "late"); err != nil {
		t.Fatal(err)
	}
	if err := client.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(server); string(got) != "early late" || err != nil {
		t.Errorf("the server got %q, %v", got, err)
	}
	if _, err := io.WriteString(server, "answer"); err != nil {
		t.Fatal(err)
	}
	server.Close()
	if got, err := io.ReadAll(client); string(got) != "answer" || err != nil {
		t.Errorf("the client got %q, %v", got, err)
	}
	<-done
}
