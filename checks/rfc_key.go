package checks

// The key of an RFC is 1 plus a number whose digits, from the highest, are:
//
//	first letter of an individual   29  (0: none, a legal entity)
//	three letters                   28 each
//	year                           100
//	month, day                      12, 31
//	homoclave                       36, 36
//	check digit                     11
//
// which is less than 2^49. Keys of legal entities are below all others.
const (
	perLetters = 100 * 12 * 31 * 36 * 36 * 11
	keysMoral  = 28 * 28 * 28 * perLetters
)

// letterEnye is the value of Ñ, whose two bytes no table of bytes can hold.
const letterEnye = 27

// outside marks a byte that no place of its kind admits. Values are smaller, so
// that one OR over several places tells whether all of them are admitted.
const outside = 0x80

var letterOf, alnumOf = byteValues()

func byteValues() (letter, alnum [256]uint8) {
	for i := range letter {
		letter[i], alnum[i] = outside, outside
	}
	for i := range 26 {
		letter['A'+i] = uint8(i)
		alnum['A'+i] = uint8(10 + i)
	}
	letter['&'] = 26
	for i := range 10 {
		alnum['0'+i] = uint8(i)
	}
	return letter, alnum
}

// PackRFC packs a well-formed RFC, already upper case, into 49 bits: two RFCs
// share a value only if they are equal, and no RFC has the value 0. It accepts
// any text of the official pattern t_RFC (day 1 to 31 in any month); ok is
// false for anything else. It does not allocate.
func PackRFC[T string | []byte](rfc T) (key uint64, ok bool) {
	var letters uint64
	n := len(rfc)
	if n == 13 {
		a, b, c, d := letterOf[rfc[0]], letterOf[rfc[1]], letterOf[rfc[2]], letterOf[rfc[3]]
		if (a|b|c|d)&outside == 0 {
			letters = ((uint64(a)+1)*28+uint64(b))*(28*28) + uint64(c)*28 + uint64(d)
		} else if letters, ok = packLetters(rfc); !ok {
			return 0, false
		}
	} else if n == 12 {
		a, b, c := letterOf[rfc[0]], letterOf[rfc[1]], letterOf[rfc[2]]
		if (a|b|c)&outside != 0 {
			return 0, false
		}
		letters = (uint64(a)*28+uint64(b))*28 + uint64(c)
	} else if letters, ok = packLetters(rfc); !ok {
		return 0, false
	}

	i := n - charsAfterLetters
	y, z := rfc[i]-'0', rfc[i+1]-'0'
	m, o := rfc[i+2]-'0', rfc[i+3]-'0'
	d, e := rfc[i+4]-'0', rfc[i+5]-'0'
	year, month, day := y*10+z, m*10+o-1, d*10+e-1
	h, j := alnumOf[rfc[i+6]], alnumOf[rfc[i+7]]
	check := alnumOf[rfc[i+8]]
	if y > 9 || z > 9 || m > 1 || o > 9 || d > 3 || e > 9 ||
		month > 11 || day > 30 || (h|j)&outside != 0 || check > 10 {
		return 0, false
	}
	date := (uint64(year)*12+uint64(month))*31 + uint64(day)
	tail := (uint64(h)*36+uint64(j))*11 + uint64(check)
	return 1 + letters*perLetters + date*(36*36*11) + tail, true
}

// packLetters is PackRFC's way for letters that include Ñ.
func packLetters[T string | []byte](rfc T) (letters uint64, ok bool) {
	end := len(rfc) - charsAfterLetters
	if end < 3 || end > 8 {
		return 0, false
	}
	var values [8]uint64
	n := 0
	for i := 0; i < end; i++ {
		switch v := letterOf[rfc[i]]; {
		case v != outside:
			values[n] = uint64(v)
		case rfc[i] == "Ñ"[0] && i+1 < end && rfc[i+1] == "Ñ"[1]:
			values[n] = letterEnye
			i++
		default:
			return 0, false
		}
		n++
	}
	switch n {
	case 3:
		return (values[0]*28+values[1])*28 + values[2], true
	case 4:
		return ((values[0]+1)*28+values[1])*(28*28) + values[2]*28 + values[3], true
	}
	return 0, false
}

// UnpackRFC is the RFC whose key PackRFC gives; ok is false for a number that is no
// key, or the key of a day that no calendar has.
func UnpackRFC(key uint64) (rfc RFC, ok bool) {
	if key == 0 || key > 29*keysMoral {
		return RFC{}, false
	}
	rest := key - 1
	next := func(base uint64) (digit byte) {
		digit = byte(rest % base)
		rest /= base
		return digit
	}
	var room [13 + 4]byte // four letters may be Ñ
	var tail [charsAfterLetters]byte
	tail[8] = alnums[next(11)]
	tail[7] = alnums[next(36)]
	tail[6] = alnums[next(36)]
	for i, value := range [...]byte{next(31) + 1, next(12) + 1, next(100)} {
		tail[4-2*i], tail[5-2*i] = '0'+value/10, '0'+value%10
	}
	letters := 3
	if key > keysMoral {
		letters = 4
	}
	var values [4]byte
	for i := letters - 1; i > 0; i-- {
		values[i] = next(28)
	}
	values[0] = byte(rest)
	if letters == 4 {
		values[0]--
	}
	s := room[:0]
	for _, v := range values[:letters] {
		switch v {
		case 26:
			s = append(s, '&')
		case letterEnye:
			s = append(s, "Ñ"...)
		default:
			s = append(s, 'A'+v)
		}
	}
	rfc, err := onCalendar(string(append(s, tail[:]...)), key)
	return rfc, err == nil
}

const alnums = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
