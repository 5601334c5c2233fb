// Command verificador checks an evidence export of cotejo without a line of cotejo:
// it is a module of its own, uses the standard library only, and was written from
// docs/data-formats.md ("An evidence export").
//
//	go run . CARPETA [-anterior CARPETA] [-ancla ARCHIVO]
//
// It recomputes every hash that the folder allows to recompute, compares everything
// that is said twice, and ends with what it could not check. Exit code 0: nothing
// speaks against the folder; 3: something does; 64: usage; 74: it cannot be read.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
)

const (
	exitDiffers = 3
	exitUsage   = 64
	exitIO      = 74
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func run(args []string, stdout, stderr io.Writer) int {
	var o options
	var before, anchor string
	flags := flag.NewFlagSet("verificador", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() {
		fmt.Fprintln(stderr, "uso: verificador CARPETA [-anterior CARPETA] [-ancla ARCHIVO]")
		flags.PrintDefaults()
	}
	flags.StringVar(&before, "anterior", "", "una exportación anterior del mismo servicio: todo lo que tiene debe seguir ahí")
	flags.StringVar(&anchor, "ancla", "", "una copia del ancla que usted guardó: la cadena debe pasar por ella")
	// The folder may stand before or after the flags.
	if len(args) > 0 && len(args[0]) > 0 && args[0][0] != '-' {
		args = append(args[1:len(args):len(args)], args[0])
	}
	if err := flags.Parse(args); err != nil || flags.NArg() != 1 {
		if err == nil {
			flags.Usage()
		}
		return exitUsage
	}
	if before != "" {
		o.before = os.DirFS(before)
	}
	if anchor != "" {
		text, err := os.ReadFile(anchor)
		if err != nil {
			fmt.Fprintf(stderr, "error: %v\n", err)
			return exitIO
		}
		o.anchor = text
	}
	r, err := verify(os.DirFS(flags.Arg(0)), o)
	if err != nil {
		fmt.Fprintf(stderr, "error: %v\n", err)
		if errors.Is(err, errFormat) || errors.Is(err, fs.ErrNotExist) {
			return exitUsage
		}
		return exitIO
	}
	r.print(stdout)
	if len(r.faults) > 0 {
		return exitDiffers
	}
	return 0
}

// options are what a reader brings along.
type options struct {
	before fs.FS  // an earlier export, nil: none
	anchor []byte // a copy of the anchor, nil: none
}

// report is what was found.
type report struct {
	checked   []string
	faults    []string // at most maxFaults
	omitted   int      // faults beyond those
	unchecked []string
}

const maxFaults = 100

func (r *report) fault(format string, args ...any) {
	if len(r.faults) < maxFaults {
		r.faults = append(r.faults, fmt.Sprintf(format, args...))
	} else {
		r.omitted++
	}
}

func (r *report) check(format string, args ...any) {
	r.checked = append(r.checked, fmt.Sprintf(format, args...))
}

func (r *report) cannot(format string, args ...any) {
	r.unchecked = append(r.unchecked, fmt.Sprintf(format, args...))
}

func (r *report) print(w io.Writer) {
	for _, s := range r.checked {
		fmt.Fprintf(w, "revisado: %s\n", s)
	}
	for _, s := range r.faults {
		fmt.Fprintf(w, "NO COINCIDE: %s\n", s)
	}
	if r.omitted > 0 {
		fmt.Fprintf(w, "NO COINCIDE: y %d faltas más\n", r.omitted)
	}
	for _, s := range r.unchecked {
		fmt.Fprintf(w, "no se puede revisar: %s\n", s)
	}
	if len(r.faults) == 0 {
		fmt.Fprintln(w, "COINCIDE: nada habla en contra de esta exportación")
	}
}
