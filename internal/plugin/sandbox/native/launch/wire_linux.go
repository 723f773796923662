package launch

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// maxMessage limits a message. The arguments and variables of a program have
// at most a few hundred kilobytes; mounts take more in a large workspace.
const maxMessage = 8 << 20

// MaxFiles is the largest number of descriptors in a message that Linux allows.
const MaxFiles = 253

// Wire is a connection between the gateway and a launcher. A message is its
// length and JSON; descriptors come with the length.
type Wire struct {
	conn  *net.UnixConn
	sends sync.Mutex
}

func NewWire(f *os.File) (*Wire, error) {
	c, err := net.FileConn(f)
	if err != nil {
		return nil, fmt.Errorf("sandbox connection: %w", err)
	}
	u, ok := c.(*net.UnixConn)
	if !ok {
		return nil, errors.Join(errors.New("sandbox connection: not a unix socket"), c.Close())
	}
	return &Wire{conn: u}, nil
}

// Send sends a message with descriptors, which stay open here.
func (w *Wire) Send(v any, fds ...int) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if len(b) > maxMessage {
		return fmt.Errorf("sandbox message of %d bytes: at most %d", len(b), maxMessage)
	}
	var head [4]byte
	binary.BigEndian.PutUint32(head[:], uint32(len(b)))
	var oob []byte
	if len(fds) > 0 {
		oob = unix.UnixRights(fds...)
	}
	w.sends.Lock()
	defer w.sends.Unlock()
	if _, _, err := w.conn.WriteMsgUnix(head[:], oob, nil); err != nil {
		return err
	}
	_, err = w.conn.Write(b)
	return err
}

// Receive reads a message and its descriptors.
func (w *Wire) Receive(v any) ([]*os.File, error) {
	var head [4]byte
	oob := make([]byte, unix.CmsgSpace(MaxFiles*4))
	n, oobn, _, _, err := w.conn.ReadMsgUnix(head[:], oob)
	if err != nil {
		return nil, err
	}
	files, err := received(oob[:oobn])
	if err == nil && n == 0 {
		err = io.EOF
	}
	if err == nil {
		_, err = io.ReadFull(w.conn, head[n:])
	}
	size := binary.BigEndian.Uint32(head[:])
	if err == nil && size > maxMessage {
		err = fmt.Errorf("sandbox message of %d bytes: at most %d", size, maxMessage)
	}
	if err == nil {
		b := make([]byte, size)
		if _, err = io.ReadFull(w.conn, b); err == nil {
			err = json.Unmarshal(b, v)
		}
	}
	if err != nil {
		CloseAll(files)
		return nil, err
	}
	return files, nil
}

// received returns the descriptors in a control message.
func received(oob []byte) ([]*os.File, error) {
	var files []*os.File
	messages, err := unix.ParseSocketControlMessage(oob)
	for _, m := range messages {
		fds, rightsErr := unix.ParseUnixRights(&m)
		err = errors.Join(err, rightsErr)
		for _, fd := range fds {
			unix.CloseOnExec(fd)
			files = append(files, os.NewFile(uintptr(fd), "sandbox"))
		}
	}
	return files, err
}

// Closed reports whether the other side has closed the connection. It must not
// be called while a message is expected.
func (w *Wire) Closed() bool {
	raw, err := w.conn.SyscallConn()
	if err != nil {
		return true
	}
	closed := false
	err = raw.Control(func(fd uintptr) {
		n, _, err := unix.Recvfrom(int(fd), make([]byte, 1), unix.MSG_PEEK|unix.MSG_DONTWAIT)
		closed = n == 0 && err == nil
	})
	return closed || err != nil
}

func (w *Wire) Close() { _ = w.conn.Close() } // nothing is buffered

func CloseAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close() // nothing was written through it
	}
}
