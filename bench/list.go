package bench

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
)

// writeList writes a synthetic complete list under article 69-B in the official
// layout, ASCII only, and returns its RFCs.
func writeList(w io.Writer, rows int, random *rand.Rand) ([]string, error) {
	out := bufio.NewWriter(w)
	fmt.Fprint(out, "Informacion actualizada al 31 de agosto de 2026,,,,,,,,,,,,,,,,,,,\r\n")
	fmt.Fprint(out, "Listado completo de contribuyentes (Articulo 69-B del CFF),,,,,,,,,,,,,,,,,,,\r\n")
	fmt.Fprint(out, "No,RFC,Nombre del Contribuyente,Situacion del contribuyente,"+
		"Numero y fecha de oficio global de presuncion SAT,Publicacion pagina SAT presuntos,"+
		"Numero y fecha de oficio global de presuncion DOF,Publicacion DOF presuntos,"+
		"Numero y fecha de oficio global de contribuyentes que desvirtuaron SAT,Publicacion pagina SAT desvirtuados,"+
		"Numero y fecha de oficio global de contribuyentes que desvirtuaron DOF,Publicacion DOF desvirtuados,"+
		"Numero y fecha de oficio global de definitivos SAT,Publicacion pagina SAT definitivos,"+
		"Numero y fecha de oficio global de definitivos DOF,Publicacion DOF definitivos,"+
		"Numero y fecha de oficio global de sentencia favorable SAT,Publicacion pagina SAT sentencia favorable,"+
		"Numero y fecha de oficio global de sentencia favorable DOF,Publicacion DOF sentencia favorable\r\n")
	rfcs := make([]string, rows)
	for i := range rfcs {
		rfcs[i] = RandomRFC(random)
		oficio := fmt.Sprintf("500-05-%d-%d de fecha 01 de junio de 2018", 2014+random.IntN(12), 1000+i)
		const date = "01/06/2018"
		fmt.Fprintf(out, "%d,%s,\"EMPRESA SINTETICA %d, S.A. DE C.V.\",Definitivo,%s,%s,%s,%s,,,,,%s,%s,%s,%s,,,,\r\n",
			i+1, rfcs[i], i+1, oficio, date, oficio, date, oficio, date, oficio, date)
	}
	return rfcs, out.Flush()
}
