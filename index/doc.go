// Package index holds immutable lookup files.
//
// Sorted maps keys to values in key order: one sstable on disk, the form of
// every rows and history file of a catalogue. The same keys and values always
// give the same bytes. Table answers "which sources mention this RFC, and in which
// rows" for one edition with one memory probe; it is derived data, disappears with
// the process and is never evidence.
//
// The package never decides whether a file is the right one: whoever opens a
// Sorted has compared its hash before. Nothing here is ever changed after it
// was written.
//
// Start reading at Sorted, then Table.
package index
