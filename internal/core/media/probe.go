package media

import (
	"bytes"
	"encoding/binary"
	"errors"
	"image"
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
	var i Info
	var ok bool
	if len(b) > 8 && bytes.HasPrefix(b[8:], []byte("WEBPVP8")) {
		i, ok = probeWebP(b)
	} else {
		c, format, err := image.DecodeConfig(bytes.NewReader(b))
		if errors.Is(err, image.ErrFormat) {
			return Info{}, ErrNotImage
		}
		i, ok = Info{Type: "image/" + format, Width: c.Width, Height: c.Height}, err == nil
	}
	if !ok || i.Width <= 0 || i.Height <= 0 {
		return Info{Type: i.Type}, errHeader
	}
	i.Orientation = 1
	if i.Type == JPEG {
		i.Orientation = orientation(b)
	}
	return i, nil
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

// orientation returns the EXIF orientation of a JPEG image, which is in one of its
// segments.
func orientation(b []byte) int {
	for at := 2; at+4 <= len(b) && b[at] == 0xff; {
		kind, n := b[at+1], int(binary.BigEndian.Uint16(b[at+2:]))
		switch {
		case kind == 0xff: // fill byte
			at++
			continue
		case n < 2 || at+2+n > len(b) || kind == 0xda: // the segments end
			return 1
		case kind == 0xe1:
			if o := exifOrientation(b[at+4 : at+2+n]); o >= 1 && o <= 8 {
				return o
			}
		}
		at += 2 + n
	}
	return 1
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
