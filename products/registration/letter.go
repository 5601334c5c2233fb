package registration

import (
	"fmt"
	"time"

	"cotejo/accounts"
	"cotejo/civil"
	"cotejo/mail"
)

// letter is what an address is told. Of what was typed into the registration only
// the RFC is in it, whose form leaves no room for a message: else anybody could
// have this service send theirs to anybody.
func letter(issued *accounts.Issued) mail.Message {
	if issued.Known {
		return mail.Message{To: issued.Fiscal.Email, Subject: "Su correo ya tiene una cuenta en cotejo", Text: fmt.Sprintf(`Buen día:

Alguien pidió registrar una cuenta de cotejo con este correo, para el RFC %s. Este correo ya tiene
una cuenta, así que no se hizo otra y este mensaje no lleva código.

Si fue usted: use las llaves que recibió al confirmar esa cuenta. Si la confirmación se cortó antes de
mostrarlas, repítala con el mismo código. Si las perdió, pida otras a quien opera el servicio. Para una
cuenta distinta, registre otro correo.

Si no fue usted, no tiene que hacer nada: su cuenta no cambió.

Registro: %s
`, issued.Fiscal.RFC, issued.ID)}
	}
	return mail.Message{To: issued.Fiscal.Email, Subject: "Código para confirmar su registro en cotejo", Text: fmt.Sprintf(`Buen día:

Alguien pidió registrar una cuenta de cotejo con este correo, para el RFC %s.

    Código:    %s
    Registro:  %s
    Vence:     %s

Envíe ambos a POST /v1/registro/confirmar con la misma llave de registro. El código sirve una vez y
admite %d intentos; si pide otro, este deja de servir.

Si no fue usted, no tiene que hacer nada: sin el código no se crea ninguna cuenta. No lo comparta con
nadie: quien opera el servicio nunca se lo pedirá.
`, issued.Fiscal.RFC, accounts.FormatCode(issued.Code), issued.ID, inMexico(issued.Expires), accounts.CodeTries)}
}

// inMexico is a moment as a letter states it.
func inMexico(t time.Time) string {
	return t.In(civil.Zone).Format("2006-01-02 15:04") + ", hora de la Ciudad de México"
}
