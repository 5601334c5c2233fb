// Package accounts keeps who may ask: mother accounts, their organizations, the
// fiscal data of each, API keys, and what somebody registers who has none of it yet, as
// commands over ledger.Tx.
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
//	global   0x44  moment 8, space 1, id 8    → nothing: a claim to look at from that moment on
//	global   0x45  key lookup id 8            → when it was last used, unix seconds
//	account  0x50  organization 8             → name, created
//	account  0x51  key lookup id 8            → key
//	account  0x52                             → the account's name, created
//	account  0x53  organization 8             → fiscal data, of an entity or of its twin
//	account  0x54  space 1, id 8              → moment of the last claim that was given up
//
// Whoever has a registration key makes an account alone: registration.go. The right
// code claims, with the address, the ids of the whole account in one batch (showCode);
// the account is written in one more (open), and a third says so. A confirmation that
// ended between them is finished by the next one with the same code; when that is over,
// Repair or PruneRegistrations gives it up. These values are JSON behind the schema
// byte, unless it says otherwise:
//
//	global   0x48  registration key's lookup id 8     → its hash, name, vendor, limits, counts
//	global   0x49  registration 8                     → data, code's HMAC, tries, state, plan of the account
//	global   0x4a  lookup id 8, HMAC of the data      → registration 8 (not JSON)
//	global   0x4b  HMAC of the address                → codes sent of late; plan of the account that has it
//	global   0x4c                                     → how many registrations wait, 8 bytes (not JSON)
//	account  0x59                                     → which registration it came from
//
// An operator's key belongs to no account: it is kept in the global group's own space.
// Every value starts with a schema byte; integers in keys are big-endian; organizations
// in keys are those of legal entities, but for 0x53.
package accounts
