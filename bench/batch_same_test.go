package bench

import "testing"

// TestWithoutMoment: what answers have of their own is left out, and nothing else.
func TestWithoutMoment(t *testing.T) {
	const one = `{"verification_id":"COM-20261122-0000000a","rfc":"AAA010101AA1","consultado":"2026-11-22T07:00:00-06:00","registro_sha256":"aa"}`
	for other, same := range map[string]bool{
		`{"verification_id":"COM-20261122-ffffffff","rfc":"AAA010101AA1","consultado":"2026-11-22T07:00:09-06:00","registro_sha256":"aa"}`: true,
		`{"verification_id":"COM-20261122-0000000a","rfc":"AAA010101AA1","consultado":"2026-11-22T07:00:00-06:00","registro_sha256":"ab"}`: false,
		`{"verification_id":"COM-20261122-0000000a","rfc":"AAA010101AA2","consultado":"2026-11-22T07:00:00-06:00","registro_sha256":"aa"}`: false,
		`{"rfc":"AAA010101AA1","consultado":"2026-11-22T07:00:00-06:00","registro_sha256":"aa"}`:                                           false,
		``: false,
	} {
		if got := string(withoutMoment([]byte(one))) == string(withoutMoment([]byte(other))); got != same {
			t.Errorf("%t, want %t: %s", got, same, other)
		}
	}
}
