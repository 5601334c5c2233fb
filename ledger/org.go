package ledger

// OrgID names what keys and data belong to within an account: a legal entity, or
// its twin for tests. The lowest bit tells which: a legal entity is even, its twin
// is the odd number above it. So whatever is kept by organization is apart from
// the other's without anybody having to remember it.
type OrgID uint64

// Sandbox reports whether the organization is a twin for tests.
func (o OrgID) Sandbox() bool { return o&1 == 1 }

// Twin is the other of the two: the twin for tests of a legal entity, the legal
// entity of a twin.
func (o OrgID) Twin() OrgID { return o ^ 1 }

// Entity is the legal entity, of it and of its twin.
func (o OrgID) Entity() OrgID { return o &^ 1 }
