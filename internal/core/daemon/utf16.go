package daemon

import (
	"encoding/binary"
	"unicode/utf16"
)

// utf16le returns a text in UTF-16, with the mark of its byte order.
func utf16le(s string) []byte {
	b := []byte{0xff, 0xfe}
	for _, u := range utf16.Encode([]rune(s)) {
		b = binary.LittleEndian.AppendUint16(b, u)
	}
	return b
}
