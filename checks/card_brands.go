package checks

// cardBrand is a brand with the lengths that its numbers have, as a set of bits,
// and the ranges of its prefixes.
type cardBrand struct {
	name     string
	lengths  uint32
	prefixes []prefixes
}

// prefixes are those from the first to the last, which have as many digits.
type prefixes struct{ first, last uint32 }

func lengths(all ...int) (set uint32) {
	for _, n := range all {
		set |= 1 << n
	}
	return set
}

func one(prefix uint32) prefixes { return prefixes{prefix, prefix} }

// cardBrands is the public table of braintree/credit-card-type (MIT), which
// drops Visa numbers of 13 digits. Only ranges known for certain are here: a
// domestic brand that is missing is UnknownBrand, or the wider brand that holds
// its range.
var cardBrands = [...]cardBrand{
	{"visa", lengths(16, 18, 19), []prefixes{one(4)}},
	{"mastercard", lengths(16), []prefixes{{51, 55}, {2221, 2229}, {223, 229}, {23, 26}, {270, 271}, one(2720)}},
	{"american-express", lengths(15), []prefixes{one(34), one(37)}},
	{"diners-club", lengths(14, 16, 19), []prefixes{{300, 305}, one(36), one(38), one(39)}},
	{"discover", lengths(16, 19), []prefixes{one(6011), {644, 649}, one(65)}},
	{"jcb", lengths(16, 17, 18, 19), []prefixes{one(2131), one(1800), {3528, 3589}}},
	{"unionpay", lengths(14, 15, 16, 17, 18, 19), []prefixes{
		one(620), {62100, 62182}, {62184, 62187}, {62185, 62197}, {62200, 62205}, {622010, 622999}, one(622018),
		{62207, 62209}, {623, 626}, one(6270), one(6272), one(6276), {627700, 627779}, {627781, 627799},
		{6282, 6289}, one(6291), one(6292), one(810), {8110, 8131}, {8132, 8151}, {8152, 8163}, {8164, 8171},
	}},
	{"maestro", lengths(12, 13, 14, 15, 16, 17, 18, 19), []prefixes{
		one(493698), {500000, 504174}, {504176, 506698}, {506779, 508999}, {56, 59}, one(63), one(67), one(6),
	}},
	{"elo", lengths(16), []prefixes{
		one(401178), one(401179), one(438935), one(457631), one(457632), one(431274), one(451416), one(457393),
		one(504175), {506699, 506778}, {509000, 509999}, one(627780), one(636297), one(636368), {650031, 650033},
		{650035, 650051}, {650405, 650439}, {650485, 650538}, {650541, 650598}, {650700, 650718}, {650720, 650727},
		{650901, 650978}, {651652, 651679}, {655000, 655019}, {655021, 655058},
	}},
	{"mir", lengths(16, 17, 18, 19), []prefixes{{2200, 2204}}},
	{"hiper", lengths(16), []prefixes{one(637095), one(63737423), one(63743358), one(637568), one(637599), one(637609), one(637612)}},
	{"hipercard", lengths(16), []prefixes{one(606282)}},
	{"naranja", lengths(16), []prefixes{one(589562), one(402918), one(527572)}},
	{"troy", lengths(16), []prefixes{one(9792)}},
	{"verve", lengths(16, 18, 19), []prefixes{{506099, 506127}}},
}

// cardRange is one range of one brand, ready to be compared.
type cardRange struct {
	prefixes
	digits int   // of both ends
	brand  uint8 // place in cardBrands plus 1
}

var cardRanges = func() (all []cardRange) {
	for i, brand := range cardBrands {
		for _, p := range brand.prefixes {
			all = append(all, cardRange{p, decimals(p.first), uint8(i + 1)})
		}
	}
	return all
}()

// decimals returns how many digits n has.
func decimals(n uint32) int {
	digits := 1
	for n >= 10 {
		n /= 10
		digits++
	}
	return digits
}

// brandOf returns the place in cardBrands, plus 1, of the brand whose prefix is
// the longest that the first eight digits begin with; of two as long, the one of
// the narrower range. 0 is none.
func brandOf(first []byte) uint8 {
	// heads[n] is the number that the first n digits write.
	var heads [9]uint32
	for i := range 8 {
		heads[i+1] = heads[i]*10 + uint32(digitOf(first[i]))
	}
	var best cardRange
	for _, r := range cardRanges {
		if head := heads[r.digits]; head < r.first || head > r.last {
			continue
		}
		if r.digits > best.digits || r.digits == best.digits && r.last-r.first < best.last-best.first {
			best = r
		}
	}
	return best.brand
}
