package media

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/gif"
	"image/jpeg"
	"image/png"
)

// quality is the quality of encoded JPEG images.
const quality = 85

// Scale returns an image upright, with a longer side of at most maxSide pixels, and its
// type. An image that needs no change is returned as it is, and so is a WebP image,
// which cannot be decoded here. Of an animation only the first frame is returned.
func Scale(data []byte, maxSide int) ([]byte, string, error) {
	info, err := Probe(data)
	if err != nil {
		return nil, "", err
	}
	if info.Pixels() > MaxPixels {
		return nil, "", fmt.Errorf("the image has %d × %d pixels; at most %d million are allowed", info.Width, info.Height,
			MaxPixels/1_000_000)
	}
	if info.Type == WebP || maxSide <= 0 || max(info.Width, info.Height) <= maxSide && info.Orientation == 1 {
		return data, info.Type, nil
	}
	src, err := decode(data, info.Type)
	if err != nil {
		return nil, "", fmt.Errorf("decode the image: %w", err)
	}
	out := orient(shrink(src, maxSide), info.Orientation)
	var b bytes.Buffer
	if out.Opaque() {
		err = jpeg.Encode(&b, out, &jpeg.Options{Quality: quality})
		return b.Bytes(), JPEG, err
	}
	err = png.Encode(&b, out)
	return b.Bytes(), PNG, err
}

func decode(data []byte, kind string) (image.Image, error) {
	r := bytes.NewReader(data)
	switch kind {
	case PNG:
		return png.Decode(r)
	case GIF:
		return gif.Decode(r)
	}
	return jpeg.Decode(r)
}

// shrink returns the image with a longer side of at most maxSide pixels. Each pixel is
// the mean of the source pixels that it covers. The source is converted in strips to
// avoid a full copy.
func shrink(src image.Image, maxSide int) *image.RGBA {
	b := src.Bounds()
	w, h := b.Dx(), b.Dy()
	nw, nh := w, h
	if long := max(w, h); long > maxSide {
		nw, nh = max(w*maxSide/long, 1), max(h*maxSide/long, 1)
	}
	out := image.NewRGBA(image.Rect(0, 0, nw, nh))
	strip := image.NewRGBA(image.Rect(0, 0, w, h/nh+2))
	for y := range nh {
		y0, y1 := y*h/nh, max((y+1)*h/nh, y*h/nh+1)
		rows := image.Rect(0, 0, w, y1-y0)
		draw.Draw(strip, rows, src, image.Pt(b.Min.X, b.Min.Y+y0), draw.Src)
		for x := range nw {
			x0, x1 := x*w/nw, max((x+1)*w/nw, x*w/nw+1)
			out.SetRGBA(x, y, mean(strip, x0, x1, y1-y0))
		}
	}
	return out
}

// mean returns the mean color of the columns x0 to x1 in the first rows of a strip.
func mean(strip *image.RGBA, x0, x1, rows int) color.RGBA {
	var sum [4]uint64
	for y := range rows {
		for px := strip.Pix[y*strip.Stride+4*x0 : y*strip.Stride+4*x1]; len(px) > 0; px = px[4:] {
			sum[0] += uint64(px[0])
			sum[1] += uint64(px[1])
			sum[2] += uint64(px[2])
			sum[3] += uint64(px[3])
		}
	}
	n := uint64(rows * (x1 - x0))
	at := func(i int) uint8 { return uint8((sum[i] + n/2) / n) }
	return color.RGBA{R: at(0), G: at(1), B: at(2), A: at(3)}
}

// orient returns the image upright, given its EXIF orientation.
func orient(src *image.RGBA, orientation int) *image.RGBA {
	if orientation <= 1 || orientation > 8 {
		return src
	}
	w, h := src.Rect.Dx(), src.Rect.Dy()
	nw, nh := w, h
	if orientation >= 5 {
		nw, nh = h, w
	}
	out := image.NewRGBA(image.Rect(0, 0, nw, nh))
	for y := range nh {
		for x := range nw {
			sx, sy := x, y
			if orientation >= 5 {
				sx, sy = y, x
			}
			if orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8 {
				sx = w - 1 - sx
			}
			if orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7 {
				sy = h - 1 - sy
			}
			out.SetRGBA(x, y, src.RGBAAt(sx, sy))
		}
	}
	return out
}
