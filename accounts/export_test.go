package accounts

import "cotejo/ledger"

// WithCheck appends to a key's text the check that makes it well formed.
func WithCheck(text string) string { return string(appendCheck([]byte(text), []byte(text))) }

// CountRegistrations counts what is stored: those that wait, by key, what the
// counter of all says, and every one.
func (s *Service) CountRegistrations() (waiting map[string]int, counter, all int, err error) {
	waiting = map[string]int{}
	err = s.eachRegistration(func(_ RegistrationID, r *registration) error {
		all++
		if r.State == RegistrationPending {
			waiting[r.Key]++
		}
		return nil
	})
	if err == nil {
		counter, err = countPending(s.ledger.Read(ledger.Global))
	}
	return waiting, counter, all, err
}
