// Package accounts keeps who may ask: mother accounts, their organizations, the
// fiscal data of each, and API keys, as commands over ledger.Tx.
//
// An account owns one wallet and has one or more organizations, which are legal
// entities. Each organization has a twin for tests, made with it: what a test key
// does belongs to the twin (ledger.OrgID). A twin has the name of its entity and
// fiscal data of its own, and stands in no list.
//
// The package never stores a key, only a keyed hash; it never tells why a key was
// refused; what it caches it can read again. Start reading at Service.CreateAccount
// (how something unique across accounts comes to be), claims.go (what becomes of it
// when the process dies in between) and Service.Authenticate (what every request asks).
//
// # Layout
//
// What is unique or looked up across accounts is first claimed in the global group:
// put if absent, naming the account; its space says what the claim is for. Then the
// thing itself is written in the account, under the same id. A claim that leads to
// nothing reads as absent; nothing is ever found without its claim.
//
//	global   0x40  account id 8               → claim
//	global   0x41  organization 8             → claim
//	global   0x42  key lookup id 8            → claim
//	global   0x43                             → HMAC of a constant under the pepper
//	global   0x44  moment 8, space 1, id 8    → nothing: a claim that nobody has looked at since
//	global   0x45  key lookup id 8            → when it was last used, unix seconds
//	account  0x50  organization 8             → name, created
//	account  0x51  key lookup id 8            → key
//	account  0x52                             → the account's name, created
//	account  0x53  organization 8             → fiscal data, of an entity or of its twin
//	account  0x54  space 1, id 8              → moment of the last claim that was given up
//
// An operator's key belongs to no account: it is kept in the global group's own space.
// Every value starts with a schema byte; integers in keys are big-endian; organizations
// in keys are those of legal entities, but for 0x53.
package accounts
