// Package snapshots keeps what the authorities published: versions of sources,
// their history, and the editions that answers are given from.
//
// The catalogue is files. Everything in it is written once, under a temporary
// name, fsynced, and published by link(2), which fails if the name exists; then
// the directory is fsynced. Nothing half-written is ever opened and every file
// is compared with its recorded hash when it is opened. Nothing published is
// ever changed; a damaged file is only ever replaced by the bytes it had.
//
// # The folder
//
//	versions/17.json                     one download: where from, when, hash, rows (Version)
//	editions/9.json                      what answers are given from (EditionManifest)
//	snapshots/sat_69b/<sha256>/          the folder of one official file, by the hash of its bytes
//	    oficial.zst                      the bytes as received: «zstd -d» gives them back
//	    filas-1.sst                      its rows as lector 1 reads them
//	snapshots/sat_69b/historia/<historia_digest>.sst
//	decisions/1.json                     what a person decided about a version in quarantine (Decision)
//	checked/sat_69b.json                 how the last attempt to renew it ended (Attempt): the only file that is replaced
//	tmp/                                 work in progress, emptied by the next writer
//	lock                                 flock(2) of the process that writes
//
// Names are contents: the same bytes arriving again share a folder, and the
// same history a file. Manifests are canonical JSON and a newline; their member
// manifiesto_sha256 is the SHA-256 of the manifest without that member, so that
// a damaged one is never believed.
//
// # What counts as evidence
//
// Digests over logical rows, never a library's file bytes: the same official
// file gives the same digests on any machine.
//
// filas_digest is the SHA-256 over one line per row, each canonical JSON
// (RFC 8785) and a newline:
//
//	{"id":["…","…"],"norm":["…",…],"oficial":["…",…],"ordinal":0}
//
// with "suprimida":true as a last member for a redacted row. id is the row's
// identity; oficial and norm are the cells, by column of the version manifest,
// as published (decoded to UTF-8) and normalised. Lines ascend by id, compared
// part by part as bytes, then by ordinal. The ordinal counts the rows that
// share an id from 0, in this order: rows that are not suppressed first; then
// by the normalised cells of the tracked columns from left to right, then of
// the others, then by the official cells of all columns, each compared as
// bytes. The order of the file has no part in it.
//
// historia_digest is the SHA-256 over a line with the chain of versions and one
// line per row that any of them had, except redacted ones, in the same order:
//
//	[{"fecha_de_orden":"2026-01-31","sha256":"…"},…]
//	{"desde":0,"eventos":[{"antes":["…"],"columnas":[3],"tipo":"C","version":1},…],"id":["…"],"ordinal":0,"presente":true}
//
// Rows of successive versions are the same row when id and ordinal are equal.
// version and desde count the chain from 0; desde is the first version that had
// the row, also when it was gone since. Tipo A: the row is in that version and not
// in the one before. C: the tracked columns in columnas (from 0) changed; antes holds
// their normalised cells before. R: the row is gone; antes holds all its
// normalised cells.
//
// edicion_sha256 is the SHA-256 of the canonical JSON array, by source, of
// {corte, fecha_de_orden, filas_digest, historia_digest, lector, sha256,
// source}; an unknown corte is null.
//
// Start reading at Catalogue, then Stage, Publish and Edition.
package snapshots
