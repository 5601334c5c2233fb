// Package payroll computes what Mexican labour and social security law says in
// numbers: aguinaldo, vacation premium, finiquito and indemnity, IMSS
// contributions, and the withholding of income tax on wages.
//
// Every function is pure: the same request gives the same result on any day and
// on any machine. Which law applies is decided by the dates of the request
// alone. A request with a part that cannot be used is refused with Problems; a
// date that a parameter table does not cover gives *ErrNoTable and no figure,
// because a figure of last year's table looks right and is wrong.
//
// Amounts are exact and in centavos (Pesos), percentages exact to five decimals
// (Decimal). There are no floats. Each line is computed at full precision,
// rounded once (halfUp) and only then added, so a total is the sum of the lines
// that a reader sees; and every line is its base times its factor.
//
// Figures that a year changes are files under data, one per table and version,
// never constants in the code: see data/README.md.
//
// Start reading at Aguinaldo, the smallest calculation; Calculation and Basis
// are what all of them share.
package payroll
