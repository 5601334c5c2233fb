package snapshots

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDecisions(t *testing.T) {
	c := newTest(t)
	publish(t, c, testSchema, 1, textOne)
	fewer := quarantine(t, c, 2, textTwo, Fault{"MENOS_FILAS", "pocas"})
	if all, damaged, err := c.Decisions(); all != nil || damaged != nil || err != nil {
		t.Errorf("before the first: %v, %v, %v", all, damaged, err)
	}
	accept := Decision{VersionID: fewer.ID, Decision: DecisionAccepted, Faults: []string{"MENOS_FILAS"}, Who: " Ana Ruiz\n", Why: "el SAT dio de baja una entidad"}
	first, err := c.Decide(accept, moment(3))
	if err != nil {
		t.Fatal(err)
	}
	want := Decision{
		Number: 1, Source: "lista", VersionID: 2, Decision: "aceptada", Faults: []string{"MENOS_FILAS"},
		Who: "Ana Ruiz", Why: "el SAT dio de baja una entidad", At: "2026-01-03T12:00:00-06:00",
	}
	if diff := cmp.Diff(want, first); diff != "" {
		t.Error(diff)
	}
	second, err := c.Decide(Decision{VersionID: 2, Decision: DecisionRejected, Who: "Luis", Why: "no"}, moment(4))
	if err != nil {
		t.Fatal(err)
	}
	if all, damaged, err := c.Decisions(); err != nil || damaged != nil || !cmp.Equal(all, []Decision{first, second}) {
		t.Errorf("%v, %v, %v", all, damaged, err)
	}
	if d, ok, err := c.DecisionOf(2); !ok || err != nil || d.Number != 2 {
		t.Errorf("the newest about version 2: %+v, %v, %v", d, ok, err)
	}
	if d, ok, err := c.DecisionOf(1); ok || err != nil {
		t.Errorf("about version 1: %+v, %v", d, err)
	}
	checkCatalogue(t, c)

	// A version that was accepted names the one in quarantine, and Verify looks.
	s, err := stageText(c, testSchema, textTwo)
	if err != nil {
		t.Fatal(err)
	}
	o := origin(2)
	o.AcceptedFrom = 2
	v, err := s.Accept(o)
	if err != nil || v.AcceptedFrom != 2 {
		t.Fatalf("%+v, %v", v, err)
	}
	checkCatalogue(t, c)

	// A damaged decision may be about any version.
	overwrite(t, c.path("decisions/1.json"), []byte("{}\n"))
	d, ok, err := c.DecisionOf(2)
	wantCorrupt(t, err, "decisions/1.json")
	if !ok || d.Number != 2 {
		t.Errorf("beside the damage: %+v, %v", d, ok)
	}
	_, ok, err = c.DecisionOf(7)
	wantCorrupt(t, err, "decisions/1.json")
	if ok {
		t.Error("a decision about version 7")
	}
	wrong, err := c.Verify(context.Background(), nil)
	if err != nil || len(wrong) != 1 {
		t.Fatalf("Verify: %v, %v", wrong, err)
	}
	wantCorrupt(t, wrong[0], "decisions/1.json")
}

func TestDecisionsThatAreRefused(t *testing.T) {
	c := newTest(t)
	served := publish(t, c, testSchema, 1, textOne)
	quarantine(t, c, 2, textTwo, Fault{"MENOS_FILAS", "pocas"})
	good := Decision{VersionID: 2, Decision: DecisionRejected, Who: "Ana", Why: "está cortado"}
	f := func(name string, change func(*Decision), says string) {
		t.Helper()
		d := good
		change(&d)
		if _, err := c.Decide(d, moment(3)); !errors.Is(err, ErrDecision) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	f("nobody", func(d *Decision) { d.Who = " \t" }, "falta quién decide")
	f("no reason", func(d *Decision) { d.Why = "" }, "falta por qué")
	f("a long name", func(d *Decision) { d.Who = strings.Repeat("ñ", maxWho+1) }, "máximo es 100")
	f("a long reason", func(d *Decision) { d.Why = strings.Repeat("ñ", maxWhy+1) }, "máximo es 1000")
	f("two lines", func(d *Decision) { d.Why = "a\nb" }, "caracteres de control")
	f("an escape", func(d *Decision) { d.Who = "Ana\x1b[2J" }, "caracteres de control")
	f("a direction mark", func(d *Decision) { d.Why = "a\u202eb" }, "caracteres de control")
	f("no text", func(d *Decision) { d.Why = "a\xff" }, "no es un texto")
	f("another word", func(d *Decision) { d.Decision = "quizá" }, "quizá")
	f("reasons of a rejection", func(d *Decision) { d.Faults = []string{"MENOS_FILAS"} }, "motivos")
	f("an acceptance of nothing", func(d *Decision) { d.Decision = DecisionAccepted }, "motivos")
	f("a version that serves", func(d *Decision) { d.VersionID = served.Sources[0].VersionID }, "no está en cuarentena")
	if _, err := c.Decide(Decision{VersionID: 9, Decision: DecisionRejected, Who: "Ana", Why: "x"}, moment(3)); !errors.Is(err, ErrNotFound) {
		t.Errorf("version 9: %v", err)
	}
	most := good
	most.Who, most.Why = strings.Repeat("ñ", maxWho), strings.Repeat("ñ", maxWhy)
	if _, err := c.Decide(most, moment(3)); err != nil {
		t.Errorf("at the limits: %v", err)
	}
	if entries, err := os.ReadDir(c.path(decisionsDir)); err != nil || len(entries) != 1 {
		t.Errorf("%v, %v", entries, err)
	}
	checkCatalogue(t, c)
}

func TestVerifyEndsWithItsContext(t *testing.T) {
	c := newTest(t)
	publish(t, c, testSchema, 1, textOne)
	publish(t, c, testSchema, 2, textTwo)
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(context.Background())
	looked := 0
	if _, err := c.Verify(ctx, func(File) { looked++; cancel(why) }); !errors.Is(err, why) {
		t.Errorf("err = %v", err)
	}
	if looked > 3 { // a manifest and its two files
		t.Errorf("it looked at %d files more", looked)
	}
}
