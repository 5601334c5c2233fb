package checks

import (
	"slices"
	"strings"
)

// Words that the authorities avoid at the head of an identifier: the SAT puts X
// in the place of the fourth letter, RENAPO of the second. People registered
// before the rule still carry them, so they are a remark and never a fault.
var (
	rfcWords = strings.Fields(`BUEI BUEY CACA CACO CAGA CAGO CAKA CAKO COGE COJA COJE COJI COJO CULO FETO GUEY
		JOTO KACA KACO KAGA KAGO KAKA KOGE KOJO KULO MAME MAMO MEAR MEAS MEON MION MOCO MULA PEDA PEDO PENE
		PUTA PUTO QULO RATA RUIN`)
	curpWords = strings.Fields(`BACA BAKA BUEI BUEY CACA CACO CAGA CAGO CAKA CAKO COGE COGI COJA COJE COJI COJO
		COLA CULO FALO FETO GETA GUEI GUEY JETA JOTO KACA KACO KAGA KAGO KAKA KAKO KOGE KOGI KOJA KOJE KOJI
		KOJO KOLA KULO LILO LOCA LOCO LOKA LOKO MAME MAMO MEAR MEAS MEON MIAR MION MOCO MOKO MULA MULO NACA
		NACO PEDA PEDO PENE PIPI PITO POPO PUTA PUTO QULO RATA ROBA ROBE ROBO RUIN SENO TETA VACA VAGA VAGO
		VAKA VUEI VUEY WUEI WUEY`)
)

// wordIn returns the word of a sorted list that s begins with, "" for none.
func wordIn(words []string, s string) string {
	if len(s) < 4 {
		return ""
	}
	if _, found := slices.BinarySearch(words, s[:4]); !found {
		return ""
	}
	return s[:4]
}
