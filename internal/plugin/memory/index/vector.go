package index

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// A packed vector has unit length. Its numbers are stored as signed bytes after the
// factor that they are multiplied by.
const factorSize = 4

// pack returns the stored form of a vector.
func pack(v []float32) []byte {
	sum, most := 0.0, 0.0
	for _, f := range v {
		sum += float64(f) * float64(f)
		most = max(most, math.Abs(float64(f)))
	}
	factor := most / 127 / math.Sqrt(sum)
	out := make([]byte, factorSize, factorSize+len(v))
	binary.LittleEndian.PutUint32(out, math.Float32bits(float32(factor)))
	for _, f := range v {
		out = append(out, byte(int8(math.Round(float64(f)/most*127))))
	}
	return out
}

// dimension returns the number of numbers of a packed vector.
func dimension(packed []byte) int { return len(packed) - factorSize }

// cosine returns the cosine of the angle between two packed vectors of the same length.
func cosine(a, b []byte) float64 {
	factor := float64(math.Float32frombits(binary.LittleEndian.Uint32(a))) *
		float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))
	a, b = a[factorSize:], b[factorSize:]
	if len(a) != len(b) {
		return 0
	}
	sum := int32(0)
	for i := range a {
		sum += int32(int8(a[i])) * int32(int8(b[i]))
	}
	return float64(sum) * factor
}

// signs returns the signs of the numbers of a packed vector, a bit for each.
func signs(packed []byte) []byte {
	v := packed[factorSize:]
	out := make([]byte, (len(v)+63)/64*8)
	for i, b := range v {
		if int8(b) < 0 {
			out[i/8] |= 1 << (i % 8)
		}
	}
	return out
}

// different returns the number of different bits. Vectors with few different signs have
// similar directions; the comparison is much cheaper than the cosine.
func different(a, b []byte) int {
	n := 0
	for len(a) >= 8 && len(b) >= 8 {
		n += bits.OnesCount64(binary.LittleEndian.Uint64(a) ^ binary.LittleEndian.Uint64(b))
		a, b = a[8:], b[8:]
	}
	return n
}
