//go:build unix

package gateway

import (
	"bytes"
	"io"
	"net"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// ends returns a frameConn and the other end of its connection.
func ends(t *testing.T) (*frameConn, net.Conn) {
	t.Helper()
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	far, err := net.Dial("unix", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	near, err := frameListener{l}.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { near.Close(); far.Close() })
	return near.(*frameConn), far
}

func TestTry(t *testing.T) {
	t.Parallel()
	near, far := ends(t)
	if !near.TryLock() {
		t.Fatal("an unused connection is locked")
	}
	if near.TryLock() {
		t.Fatal("the connection was locked twice")
	}
	frame := bytes.Repeat([]byte("0123456789"), 1000)
	sent, n := 0, len(frame)
	for n == len(frame) {
		n = near.TryWrite(frame)
		sent += n
	}
	// The rest of the frame must precede other writes.
	var wg sync.WaitGroup
	wg.Go(func() {
		if _, err := near.Write([]byte("next")); err != nil {
			t.Error(err)
		}
		near.Close()
	})
	time.Sleep(10 * time.Millisecond) // Write is waiting
	wg.Go(func() {
		if err := near.Finish(frame[n:]); err != nil {
			t.Error(err)
		}
	})
	got, err := io.ReadAll(far)
	if err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	want := append(bytes.Repeat(frame, sent/len(frame)+1), "next"...)
	if !bytes.Equal(got, want) {
		t.Errorf("%d bytes that end with %q, want %d", len(got), got[max(0, len(got)-20):], len(want))
	}
}

func TestTryWithoutSocket(t *testing.T) {
	t.Parallel()
	near, far := net.Pipe()
	defer near.Close()
	defer far.Close()
	if newFrameConn(near).TryLock() {
		t.Error("a pipe can be written to without blocking")
	}
}

func TestTryClosed(t *testing.T) {
	t.Parallel()
	near, _ := ends(t)
	near.Close()
	if !near.TryLock() {
		t.Fatal("locked")
	}
	if n := near.TryWrite([]byte("x")); n != 0 {
		t.Errorf("%d bytes were written", n)
	}
	if err := near.Finish([]byte("x")); err == nil {
		t.Error("the rest was written")
	}
}
