package media

import (
	"bytes"
	"encoding/binary"
	"errors"
)

// The supported image types.
const (
	PNG  = "image/png"
	JPEG = "image/jpeg"
	GIF  = "image/gif"
	WebP = "image/webp"
)

// Info is the data in the header of an image.
type Info struct {
	Type          string
	Width, Height int // as stored, before Orientation is applied
	// Orientation is the EXIF orientation: 1 is upright, 2 to 8 are rotated or mirrored.
	Orientation int
}

// Pixels returns the number of pixels.
func (i Info) Pixels() int64 { return int64(i.Width) * int64(i.Height) }

// ErrNotImage reports that the content has none of the supported image types.
var ErrNotImage = errors.New("not a PNG, JPEG, GIF or WebP image")

var errHeader = errors.New("the image header is damaged")

// Probe reads the header of an image. It does not decode the image.
func Probe(b []byte) (Info, error) {
	formats := [...]struct {
		magic string
		at    int
		f     func([]byte) (Info, bool)
	}{
		{"\x89PNG\r\n\x1a\n", 0, probePNG},
		{"\xff\xd8\xff", 0, probeJPEG},
		{"GIF87a", 0, probeGIF},
		{"GIF89a", 0, probeGIF},
		{"WEBPVP8", 8, probeWebP},
	}
	for _, r := range formats {
		if len(b) < r.at || !bytes.HasPrefix(b[r.at:], []byte(r.magic)) {
			continue
		}
		i, ok := r.f(b)
		if !ok || i.Width <= 0 || i.Height <= 0 {
			return Info{Type: i.Type}, errHeader
		}
		if i.Orientation < 1 || i.Orientation > 8 {
			i.Orientation = 1
		}
		return i, nil
	}
	return Info{}, ErrNotImage
}

func probePNG(b []byte) (Info, bool) {
	i := Info{Type: PNG}
	if len(b) < 33 || binary.BigEndian.Uint32(b[8:]) != 13 || string(b[12:16]) != "IHDR" {
		return i, false
	}
	w, h := binary.BigEndian.Uint32(b[16:]), binary.BigEndian.Uint32(b[20:])
	if w > 1<<31-1 || h > 1<<31-1 {
		return i, false
	}
	i.Width, i.Height = int(w), int(h)
	return i, true
}

func probeGIF(b []byte) (Info, bool) {
	i := Info{Type: GIF}
	if len(b) < 13 {
		return i, false
	}
	i.Width, i.Height = int(binary.LittleEndian.Uint16(b[6:])), int(binary.LittleEndian.Uint16(b[8:]))
	return i, true
}

// probeWebP reads the three WebP formats: lossy, lossless, and extended.
func probeWebP(b []byte) (Info, bool) {
	i := Info{Type: WebP}
	if string(b[:4]) != "RIFF" || len(b) < 30 {
		return i, false
	}
	data := b[20:]
	switch b[15] {
	case ' ':
		if data[0]&1 != 0 || string(data[3:6]) != "\x9d\x01\x2a" {
			return i, false
		}
		i.Width, i.Height = int(binary.LittleEndian.Uint16(data[6:])&0x3fff), int(binary.LittleEndian.Uint16(data[8:])&0x3fff)
	case 'L':
		if data[0] != 0x2f {
			return i, false
		}
		bits := binary.LittleEndian.Uint32(data[1:])
		i.Width, i.Height = int(bits&0x3fff)+1, int(bits>>14&0x3fff)+1
	case 'X':
		i.Width = 1 + int(data[4]) + int(data[5])<<8 + int(data[6])<<16
		i.Height = 1 + int(data[7]) + int(data[8])<<8 + int(data[9])<<16
	default:
		return i, false
	}
	return i, true
}

// probeJPEG reads the segments up to the first frame header.
func probeJPEG(b []byte) (Info, bool) {
	i := Info{Type: JPEG}
	for at := 2; at+4 <= len(b); {
		if b[at] != 0xff {
			return i, false
		}
		kind := b[at+1]
		if kind == 0xff { // fill byte
			at++
			continue
		}
		if kind == 0x01 || kind >= 0xd0 && kind <= 0xd8 { // marker without a length
			at += 2
			continue
		}
		n := int(binary.BigEndian.Uint16(b[at+2:]))
		if n < 2 || at+2+n > len(b) || kind == 0xd9 || kind == 0xda {
			return i, false
		}
		seg := b[at+4 : at+2+n]
		switch {
		case kind == 0xe1 && i.Orientation == 0:
			i.Orientation = exifOrientation(seg)
		case kind >= 0xc0 && kind <= 0xcf && kind != 0xc4 && kind != 0xc8 && kind != 0xcc:
			if len(seg) < 6 {
				return i, false
			}
			i.Height, i.Width = int(binary.BigEndian.Uint16(seg[1:])), int(binary.BigEndian.Uint16(seg[3:]))
			return i, true
		}
		at += 2 + n
	}
	return i, false
}

// exifOrientation returns the orientation in an EXIF segment, or 0 if there is none.
func exifOrientation(seg []byte) int {
	tiff, ok := bytes.CutPrefix(seg, []byte("Exif\x00\x00"))
	if !ok || len(tiff) < 8 {
		return 0
	}
	var order binary.ByteOrder = binary.BigEndian
	if tiff[0] == 'I' {
		order = binary.LittleEndian
	}
	at := int64(order.Uint32(tiff[4:]))
	if at+2 > int64(len(tiff)) {
		return 0
	}
	fields := tiff[at+2:]
	for n := order.Uint16(tiff[at:]); n > 0 && len(fields) >= 12; n-- {
		if order.Uint16(fields) == 0x0112 {
			return int(order.Uint16(fields[8:]))
		}
		fields = fields[12:]
	}
	return 0
}
