// Package accounts keeps who may ask: mother accounts, their organizations and
// API keys, as commands over ledger.Tx.
//
// It never stores a key, only a keyed hash; it never tells why a key was
// refused; what it caches it can read again. Start reading at
// Service.CreateOrganization (how something unique across accounts comes to
// be) and Service.Authenticate (what every request asks).
//
// # Layout
//
// What is unique or looked up across accounts is first claimed in the global
// group: put if absent, naming the account and what the claim is for. Then the
// thing itself is written in the account, under the same id. A crash between the
// two leaves a claim that leads to nothing, which reads as absent and is never
// given again; nothing is ever found without its claim.
//
//	global   0x40  account id 8     → claim
//	global   0x41  organization 8   → claim
//	global   0x42  key lookup id 8  → claim
//	global   0x43                   → HMAC of a constant under the pepper
//	account  0x50  organization 8   → name, created
//	account  0x51  key lookup id 8  → keyed hash, organization, mode, created
//
// Every value starts with a schema byte; integers in keys are big-endian.
package accounts
